# bertc: `make` builds build/bertc, `make test` builds and runs all tests, `make demo` shows the main job.
#
#   BUILD=folder        where objects and binaries go (default build)
#   WERROR=1            warnings are errors
#   SANITIZE=address|undefined|thread   instrumented build (its own BUILD folder: build-address, ...)
#   DEBUG=1             -O0 (build-debug)

SANITIZE ?=
DEBUG ?=
WERROR ?=
BUILD ?= build$(if $(SANITIZE),-$(SANITIZE))$(if $(DEBUG),-debug)

CC = gcc
OPTIMISE = $(if $(DEBUG),-O0,$(if $(SANITIZE),-O1,-O3))
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wvla -Wmissing-prototypes -Wwrite-strings \
	$(if $(WERROR),-Werror)
HARDENING = -fstack-protector-strong -fPIE $(if $(SANITIZE)$(DEBUG),,-D_FORTIFY_SOURCE=2)
CPPFLAGS = -Isrc -D_GNU_SOURCE -DVERSION='"$(VERSION)"' -MMD -MP
CFLAGS = -std=c11 -g $(OPTIMISE) $(WARNINGS) $(HARDENING) -fno-math-errno -fopenmp-simd \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)
LDFLAGS = -pie -Wl,-z,relro,-z,now -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE))
LDLIBS = -ldnnl -lgomp -lutf8proc -lxxhash -lz -lbz2 -lzstd -llzma -lm
VERSION = 0.1.0

# Kernels of the CPU back end are compiled once for each instruction set (docs/backends.md): a file in
# src/backend/cpu/kernels defines symbols that end in _avx2, _avx512, _avx512_bf16 or _amx.
ISAS = avx2 avx512 avx512_bf16 amx
ISA_FLAGS_avx2 = -mavx2 -mfma -mf16c -mbmi2
ISA_FLAGS_avx512 = $(ISA_FLAGS_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mprefer-vector-width=512
ISA_FLAGS_avx512_bf16 = $(ISA_FLAGS_avx512) -mavx512bf16
ISA_FLAGS_amx = $(ISA_FLAGS_avx512_bf16) -mamx-tile -mamx-bf16

SOURCES = $(sort $(wildcard src/*/*.c src/backend/ref/*.c src/backend/cpu/*.c))
KERNELS = $(sort $(wildcard src/backend/cpu/kernels/*.c))
LIBRARY_OBJECTS = $(patsubst src/%.c,$(BUILD)/%.o,$(filter-out src/cmd/main.c,$(SOURCES))) \
	$(foreach isa,$(ISAS),$(patsubst src/%.c,$(BUILD)/%.$(isa).o,$(KERNELS)))
TESTS = $(sort $(wildcard tests/*/test_*.c))
TEST_PROGRAMS = $(patsubst %.c,$(BUILD)/%,$(TESTS))

.PHONY: all test clean
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/bertc

$(BUILD)/bertc: $(BUILD)/cmd/main.o $(BUILD)/libbertc.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/libbertc.a: $(LIBRARY_OBJECTS)
	rm -f $@ && ar rcs $@ $^

$(BUILD)/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

define KERNEL_RULE
$(BUILD)/backend/cpu/kernels/%.$(1).o: src/backend/cpu/kernels/%.c
	@mkdir -p $$(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(ISA_FLAGS_$(1)) -DISA=$(1) -DISA_$(1) -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call KERNEL_RULE,$(isa))))

$(BUILD)/tests/%: tests/%.c $(BUILD)/libbertc.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -Itests $(LDFLAGS) -o $@ $< $(BUILD)/libbertc.a -lcmocka $(LDLIBS)

test: $(BUILD)/bertc $(TEST_PROGRAMS)
	@for t in $(TEST_PROGRAMS); do echo "== $$t"; $$t || exit 1; done

clean:
	rm -rf build build-*

-include $(shell test -d $(BUILD) && find $(BUILD) -name '*.d')
