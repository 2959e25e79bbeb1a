# bertc. On a fresh Debian machine `make demo` and `make test` install what they need first.
#
#   make                  builds build/bertc
#   make test             all tests, on a build whose warnings are errors; ends with "N passed, N failed, N skipped"
#   make test-long        tests that take minutes: every recipe on a small model, a run killed 200 times, ...
#   make demo             the main job on a small invented world; CORPUS=path on your own text
#   make install          program, modules, library, man pages, completion, recipes, documents, below PREFIX (/usr/local) and DESTDIR
#   make deb              a Debian package, build/release/bertc_VERSION_amd64.deb
#   make tarball          an archive that runs on other x86-64 Linux systems, build/release/bertc-VERSION-linux-x86_64.tar.xz
#   make release          both, the source, and SHA256SUMS, in build/release
#   make wheel            the Python package with program and libraries (docs/library.md), checked in a fresh virtual environment
#   make test-python      tests of the Python package on the source tree; PYTHON=python3 must have NumPy
#   make deps             installs missing Debian packages
#   make test-gpu         on a machine with a GPU: every operation against float64, curves, compute-sanitizer
#   make test-sanitizers  all tests under the address, undefined and thread sanitizers, one after the other
#   make fuzz             feeds made-up bytes to every parser under the address and undefined sanitizers (clang):
#                         FUZZ_SECONDS=60 each, or FUZZ_RUNS=executions each; TESTS=pattern for some of them;
#                         FUZZ_COMPARISONS=1 looks for new branches (slower, learns from what is compared)
#   make fuzz-coverage    which lines of each parser its fuzzing has reached
#   make clean
#
#   BUILD=folder          where objects and programs go (default build)
#   SANITIZE=address|undefined|thread   instrumented build (its own folder: build-address, ...)
#   DEBUG=1               without optimisation (build-debug)
#   WERROR=1              warnings are errors
#
# Parts that a build machine may lack are built where what they need is there; a program has them all, and loads what it needs of a
# machine's libraries when it needs it (docs/dependencies.md). =0 leaves a part out, =1 is an error where something is missing.
#
#   HDF5=0|1              NVIDIA's HDF5 files of instances
#   MPI=0|1               MPI between ranks of many machines
#   CUDA=0|1              the back end for NVIDIA's GPUs (docs/cuda.md). Its kernels take minutes: make, make demo and make install
#                         build them; make test and single files do without unless CUDA=1 is given
#   CUDA_HOME=folder      where the toolkit is (default /usr/local/cuda)
#   CUDNN=0               without cuDNN's attention, though cudnn.h is there
#   V=1                   shows the commands
#   TESTS=pattern         only test programs whose path contains it: make test TESTS=base/
#   STRICT=1              a skipped test is a failed one: for machines that have every instruction set and library

# Number and date of the version are those of the newest entry of CHANGELOG.md, and stand nowhere else. Packages and archives carry
# that date, so that times do not tell two builds of the same source apart.
VERSION := $(shell sed -n '/^\#\# /{s/^\#\# \([^ ]*\) .*/\1/p;q;}' CHANGELOG.md)
VERSION_DATE := $(shell sed -n '/^\#\# /{s/.*(\(.*\))/\1/p;q;}' CHANGELOG.md)
SOURCE_DATE_EPOCH = $(shell date -u -d '$(VERSION_DATE)' +%s)
PREFIX = /usr/local
DESTDIR =
SANITIZE =
DEBUG =
WERROR =
V =
TESTS =
STRICT =
CORPUS =
BUILD = build$(if $(SANITIZE),-$(SANITIZE))$(if $(DEBUG),-debug)

# All cores, unless the command line says -j.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

CC = gcc
OPTIMISE = $(if $(DEBUG),-O0,$(if $(SANITIZE),-O1,-O3))
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wvla -Wmissing-prototypes -Wwrite-strings
HARDENING = -fstack-protector-strong -fPIC -fno-semantic-interposition $(if $(SANITIZE)$(DEBUG),,-D_FORTIFY_SOURCE=2)
CPPFLAGS = -Isrc -Iinclude -D_GNU_SOURCE -DVERSION='"$(VERSION)"'
INSTRUMENT =
CFLAGS = -std=c11 -g $(OPTIMISE) $(WARNINGS) $(HARDENING) -fno-math-errno -fopenmp-simd \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer) $(INSTRUMENT)
# Modules lie beside the installed program in ../lib/bertc, beside the built one in lib/bertc.
LDFLAGS = -pie -Wl,-z,relro,-z,now -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/bertc:$$ORIGIN/lib/bertc:$$ORIGIN/../../lib/bertc' -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(INSTRUMENT)
LIBS = -ldnnl -lgomp -lutf8proc -lxxhash -lz -lbz2 -lzstd -llzma -lexpat -lnettle -larchive -lmicrohttpd -lm
# Folders with the headers of HDF5 and of each MPI, where Debian and Fedora have them: only headers are needed. Elsewhere:
# make HDF5_INCLUDE=folder OPENMPI_INCLUDE=folder MPICH_INCLUDE=folder, the last for all with MPICH's ABI (Intel MPI, MVAPICH).
MACHINE := $(shell $(CC) -dumpmachine)
HDF5_INCLUDE = $(call folder_of,hdf5.h,/usr/include/hdf5/serial /usr/include /usr/local/include)
OPENMPI_INCLUDE = $(call folder_of,mpi.h,/usr/lib/$(MACHINE)/openmpi/include /usr/include/openmpi-x86_64)
MPICH_INCLUDE = $(call folder_of,mpi.h,/usr/include/$(MACHINE)/mpich /usr/include/mpich-x86_64)
folder_of = $(patsubst %/$(1),%,$(firstword $(wildcard $(addsuffix /$(1),$(2)))))
MPIS = $(if $(OPENMPI_INCLUDE),openmpi) $(if $(MPICH_INCLUDE),mpich)
HDF5 = $(if $(HDF5_INCLUDE),1,0)
MPI = $(if $(strip $(MPIS)),1,0)
HAS_HDF5 = $(filter-out 0,$(HDF5))
MPI_MODULES = $(if $(filter-out 0,$(MPI)),$(foreach mpi,$(MPIS),$(BUILD)/lib/bertc/bertc-mpi-$(mpi).so))
CUDA_HOME = /usr/local/cuda
NVCC = $(CUDA_HOME)/bin/nvcc
# What the back end for GPUs is built from, each with NVIDIA's package that has it. A program that runs needs none of them: the
# CUDA runtime is linked statically, the other libraries are loaded when a device is opened.
CUDA_PARTS = bin/nvcc:cuda-nvcc-13-0 include/cuda_runtime.h:cuda-cudart-dev-13-0 lib64/libcudart_static.a:cuda-cudart-dev-13-0 \
	include/cublasLt.h:libcublas-dev-13-0 include/nccl.h:libnccl-dev
CUDA_MISSING := $(strip $(foreach part,$(CUDA_PARTS),$(if $(wildcard $(CUDA_HOME)/$(firstword $(subst :, ,$(part)))),,$(part))))
# make, make demo and make install have it where the toolkit is; make test, instrumented builds and single files do without, unless
# CUDA=1 is given: the kernels take minutes, and tests run them on the emulated device.
CUDA = $(if $(SANITIZE)$(INSTRUMENT)$(CUDA_MISSING)$(filter-out all demo install deb tarball release wheel wheel-file deps,$(MAKECMDGOALS)),0,1)
HAS_CUDA = $(filter-out 0,$(CUDA))
# cuDNN is loaded when a run asks for it: only its header is needed.
CUDNN = $(if $(firstword $(wildcard $(CUDA_HOME)/include/cudnn.h /usr/include/cudnn.h)),1,0)
CUDNN_SOURCES = src/backend/cuda/attention_cudnn.c src/backend/cuda/cudnn_graph.c
CUDNN_ABSENT = src/backend/cuda/attention_cudnn_absent.c
CUDA_LIBS = $(CUDA_HOME)/lib64/libcudart_static.a -lrt -lstdc++
LDLIBS = $(LIBS) -ldl
SAY = @$(if $(V),:,printf '  %-7s %s\n')
QUIET = $(if $(V),,@)
COMPILE = $(QUIET)$(CC) $(CPPFLAGS) -MMD -MP $(CFLAGS) $(if $(WERROR),-Werror)

# header:package, looked for once in each build folder
CHECKED = $(BUILD)/libraries$(if $(HAS_HDF5),-hdf5)$(if $(filter-out 0,$(MPI)),-mpi)$(if $(HAS_CUDA),-cuda)
LIBRARIES = dnnl.h:libdnnl-dev utf8proc.h:libutf8proc-dev xxhash.h:libxxhash-dev zlib.h:zlib1g-dev bzlib.h:libbz2-dev \
	zstd.h:libzstd-dev lzma.h:liblzma-dev expat.h:libexpat1-dev curl/curl.h:libcurl4-openssl-dev nettle/nettle-meta.h:nettle-dev archive.h:libarchive-dev \
	microhttpd.h:libmicrohttpd-dev
# g++ compiles the GPU's kernels for the tests, cmocka runs the tests, mandoc checks the man pages in them
PACKAGES = gcc g++ libc6-dev $(foreach library,$(LIBRARIES),$(lastword $(subst :, ,$(library)))) libcmocka-dev mandoc libhdf5-dev libopenmpi-dev openmpi-bin iproute2

# Kernels of the CPU back end are compiled once for each instruction set (docs/backends.md): a file in
# src/backend/cpu/kernels defines symbols that end in _avx2, _avx512, _avx512_vnni, _avx512_bf16 or _amx.
ISAS = avx2 avx512 avx512_vnni avx512_bf16 amx
ISA_FLAGS_avx2 = -mavx2 -mfma -mf16c -mbmi2
ISA_FLAGS_avx512 = $(ISA_FLAGS_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mprefer-vector-width=512
ISA_FLAGS_avx512_vnni = $(ISA_FLAGS_avx512) -mavx512vnni
ISA_FLAGS_avx512_bf16 = $(ISA_FLAGS_avx512_vnni) -mavx512bf16
ISA_FLAGS_amx = $(ISA_FLAGS_avx512_bf16) -mamx-tile -mamx-bf16 -mamx-int8

# The GPU's kernels are compiled to machine code for these generations, and to PTX, which the driver translates for later
# ones: that of sm_90, since what is written for one generation runs on none before it.
CUDA_ARCHITECTURES = 75 80 90
CUDA_PTX = 90
# Where the C compiler is called through ccache, so is nvcc.
NVCC_LAUNCHER = $(if $(findstring ccache,$(shell command -v $(CC))),ccache)
NVCC_FLAGS = -std=c++20 -O3 $(if $(LINEINFO),-lineinfo) --threads 2 -Isrc -D_GNU_SOURCE -Xcompiler -fPIC,-Wall,-Wextra \
	$(foreach sm,$(CUDA_ARCHITECTURES),-gencode arch=compute_$(sm),code=sm_$(sm)) \
	-gencode arch=compute_$(CUDA_PTX),code=compute_$(CUDA_PTX)
# LINEINFO=1, for profilers, writes the lines of the source into the kernels, with the absolute paths of its folders.
# nvcc names what is local to a file after the file's absolute path and a random number; with these, after its path in the source.
NVCC_NAMES = -Xcudafe --orig_src_path_name=$< -frandom-seed=$<

# One of the two files has the functions of formats/hdf5_rows.h. Which of the files for GPUs a program has, or the emulated
# device's, is decided when it is linked.
HDF5_SOURCES = src/formats/hdf5_rows.c src/formats/hdf5_library.c
SOURCES = $(filter-out $(if $(HAS_HDF5),src/formats/hdf5_absent.c,$(HDF5_SOURCES)) $(NCCL_SOURCES) $(NO_CUDA_SOURCES), \
	$(sort $(wildcard src/*/*.c src/data/pretraining/*.c src/backend/ref/*.c src/backend/cpu/*.c)))
NCCL_SOURCES = src/comm/nccl.c src/comm/nccl_library.c
CUDA_SOURCES = $(filter-out $(if $(filter 1,$(CUDNN)),$(CUDNN_ABSENT),$(CUDNN_SOURCES)),$(sort $(wildcard src/backend/cuda/*.c))) $(NCCL_SOURCES)
NO_CUDA_SOURCES = src/backend/cuda_absent.c src/comm/nccl_absent.c
KERNELS = $(sort $(wildcard src/backend/cpu/kernels/*.c))
CUDA_KERNELS = $(sort $(wildcard src/backend/cuda/kernels/*.cu))
LIBRARY_OBJECTS = $(patsubst src/%.c,$(BUILD)/%.o,$(filter-out src/cmd/main.c,$(SOURCES))) \
	$(foreach isa,$(ISAS),$(patsubst src/%.c,$(BUILD)/%.$(isa).o,$(KERNELS)))
CUDA_OBJECTS = $(patsubst src/%.c,$(BUILD)/%.o,$(CUDA_SOURCES)) $(patsubst src/%.cu,$(BUILD)/%.cu.o,$(CUDA_KERNELS))
# What a program is linked with: the back end for GPUs where there is one. Tests do without its fifty megabytes, but for those on
# a GPU; the emulated device brings its own.
GPU_LIBRARY = $(BUILD)/libbertc_$(if $(HAS_CUDA),cuda,nocuda).a
WITH_GPUS = $(LINK_BEGIN) $(BUILD)/libbertc.a $(GPU_LIBRARY) $(LINK_END) $(if $(HAS_CUDA),$(CUDA_LIBS))
WITHOUT_GPUS = $(LINK_BEGIN) $(BUILD)/libbertc.a $(BUILD)/libbertc_nocuda.a $(LINK_END)
LINK_BEGIN = -Wl,--start-group
LINK_END = -Wl,--end-group
# The CUDA back end on an emulated device, for the tests (docs/cuda.md).
EMULATED_OBJECTS = $(patsubst src/backend/%.c,$(BUILD)/emulated/%.o,$(filter-out $(CUDNN_SOURCES),$(sort $(wildcard src/backend/cuda/*.c)))) $(patsubst src/%.c,$(BUILD)/emulated/%.o,$(NCCL_SOURCES)) \
	$(patsubst src/backend/%.cu,$(BUILD)/emulated/%.o,$(CUDA_KERNELS)) \
	$(patsubst tests/cuda/emulation/%.cc,$(BUILD)/emulated/device/%.o,$(sort $(wildcard tests/cuda/emulation/*.cc))) \
	$(patsubst tests/cuda/emulation/%.cu,$(BUILD)/emulated/device/%.cu.o,$(sort $(wildcard tests/cuda/emulation/*.cu)))
# cuDNN's graphs are built and planned without a device: tests/cudnn, where its header is.
# The emulated device answers the thread sanitizer's hooks itself: the two do not go together.
TEST_PROGRAMS = $(patsubst %.c,$(BUILD)/%,$(sort $(filter-out tests/long/% tests/gpu/% $(if $(filter thread,$(SANITIZE)),tests/cuda/%) $(if $(filter 1,$(CUDNN)),,tests/cudnn/%),$(wildcard tests/*/test_*.c))))
GPU_PROGRAMS = $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/gpu/test_*.c)))
LONG_PROGRAMS = $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/long/test_*.c)))
# Those of the emulated device take longest and therefore run first.
RUN_PROGRAMS = $(foreach program,$(filter $(BUILD)/tests/cuda/%,$(TEST_PROGRAMS)) $(filter-out $(BUILD)/tests/cuda/%,$(TEST_PROGRAMS)),$(if $(or $(if $(TESTS),,all),$(findstring $(TESTS),$(program))),$(program)))
RUN_LONG = $(foreach program,$(LONG_PROGRAMS),$(if $(or $(if $(TESTS),,all),$(findstring $(TESTS),$(program))),$(program)))
RUN_LONG_SCRIPTS = $(foreach script,$(sort $(wildcard tests/long/*.sh)),$(if $(or $(if $(TESTS),,all),$(findstring $(TESTS),$(script))),$(script)))
DEMO_PROGRAMS = $(patsubst %.c,$(BUILD)/%,$(wildcard demo/*.c))

# Fuzz targets and what they need of the library: the folders that read what others wrote.
FUZZ_SECONDS = 60
FUZZ_RUNS =
FUZZ_COMPARISONS =
FUZZ_FOLDERS = base formats text data model weights tasks serve report train
# What the targets have learned lies here, whichever build they learned it in.
FUZZ_OUT = build-fuzz/fuzz
# Small blocks let small inputs cross their borders.
FUZZ_SMALL = -DSTREAM_BLOCK_BYTES=64ul -DFILE_BUFFER_BYTES=256ul -DTOKENIZER_CACHE_BITS=6 -DTEXT_BATCH_BYTES=64ul \
	-DTEXT_LINE_LIMIT=32ul -DRECORD_LIMIT=256ul
# Two thirds of a target's time would go into noting comparisons, which seeds and dictionaries make up for.
FUZZ_BUILD = CC=clang OPTIMISE=-O2 SANITIZE=fuzzer-no-link,address,undefined \
	INSTRUMENT='$(FUZZ_SMALL) $(if $(FUZZ_COMPARISONS),,-fno-sanitize-coverage=trace-cmp)'
FUZZ_PROGRAMS = $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/fuzz/*.c)))
RUN_FUZZ = $(foreach program,$(FUZZ_PROGRAMS),$(if $(or $(if $(TESTS),,all),$(findstring $(TESTS),$(program))),$(program)))

.PHONY: all deps test test-gpu gpu-programs run-tests test-long run-long test-sanitizers fuzz run-fuzz fuzz-coverage run-fuzz-coverage demo install install-program install-library wheel wheel-file test-python deb tarball release clean
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/bertc

$(BUILD)/bertc: $(BUILD)/cmd/main.o $(BUILD)/libbertc.a $(GPU_LIBRARY) $(BUILD)/gpus $(MPI_MODULES)
	$(SAY) link $@
	$(QUIET)$(CC) $(LDFLAGS) -o $@ $< $(WITH_GPUS) $(LDLIBS)
ifneq ($(if $(HAS_CUDA),,$(wildcard $(NVCC))),)
	@for part in $(CUDA_MISSING); do \
		echo "  note    no back end for GPUs: $(CUDA_HOME)/$${part%%:*} is missing: install NVIDIA's package $${part##*:}"; done
endif
ifeq ($(HDF5_INCLUDE),)
	@echo "  note    no HDF5: hdf5.h is missing: install the package libhdf5-dev"
endif
ifeq ($(strip $(MPIS)),)
	@echo "  note    no MPI: mpi.h is missing: install the package libopenmpi-dev or libmpich-dev"
endif

$(BUILD)/libbertc.a: $(LIBRARY_OBJECTS) $(BUILD)/parts
	$(SAY) archive $@
	$(QUIET)rm -f $@ && ar rcs $@ $(LIBRARY_OBJECTS)
$(BUILD)/libbertc_cuda.a: $(CUDA_OBJECTS) $(BUILD)/parts
	$(SAY) archive $@
	$(QUIET)rm -f $@ && ar rcs $@ $(CUDA_OBJECTS)
$(BUILD)/libbertc_nocuda.a: $(patsubst src/%.c,$(BUILD)/%.o,$(NO_CUDA_SOURCES))
	$(SAY) archive $@
	$(QUIET)rm -f $@ && ar rcs $@ $^

# Written anew only when other parts are asked for: then the library is put together again.
$(BUILD)/parts: .force
	@mkdir -p $(@D)
	@echo 'HDF5=$(HDF5) CUDNN=$(CUDNN)' | cmp -s - $@ || echo 'HDF5=$(HDF5) CUDNN=$(CUDNN)' >$@
# Likewise where programs are linked with the back end for GPUs, or no longer.
$(BUILD)/gpus: .force
	@mkdir -p $(@D)
	@echo 'CUDA=$(HAS_CUDA)' | cmp -s - $@ || echo 'CUDA=$(HAS_CUDA)' >$@

$(patsubst src/%.c,$(BUILD)/%.o,$(HDF5_SOURCES)): private CPPFLAGS += -isystem $(HDF5_INCLUDE)
$(BUILD)/comm/nccl.o $(BUILD)/comm/nccl_library.o: private CPPFLAGS += -isystem $(CUDA_HOME)/include

# The linker's build ID depends on debugging information, and so on the folder of the build: packed files have none of the two.
NO_IDENTITY = -Wl,--build-id=none
# A module for each MPI (src/comm/mpi_module.h). What it calls is in the library that the program loads first.
$(BUILD)/lib/bertc/bertc-mpi-openmpi.so: private CPPFLAGS += -isystem $(OPENMPI_INCLUDE)
$(BUILD)/lib/bertc/bertc-mpi-mpich.so: private CPPFLAGS += -isystem $(MPICH_INCLUDE)
# MPI_STATUSES_IGNORE is an address there that gcc takes for an array without room.
$(BUILD)/lib/bertc/bertc-mpi-mpich.so: private CFLAGS += -Wno-stringop-overflow
$(BUILD)/lib/bertc/bertc-mpi-%.so: src/comm/modules/mpi.c $(BUILD)/flags | $(CHECKED)
	@mkdir -p $(@D)
	$(SAY) module $@
	$(COMPILE) -fPIC -shared -Wl,-z,relro,-z,now $(NO_IDENTITY) -o $@ $<

$(BUILD)/%.o: src/%.c $(BUILD)/flags | $(CHECKED)
	@mkdir -p $(@D)
	$(SAY) compile $<
	$(COMPILE) -c -o $@ $<

define KERNEL_RULE
$(BUILD)/backend/cpu/kernels/%.$(1).o: src/backend/cpu/kernels/%.c $(BUILD)/flags | $(CHECKED)
	@mkdir -p $$(@D)
	$$(SAY) compile "$$< ($(1))"
	$$(COMPILE) $(ISA_FLAGS_$(1)) -DISA=$(1) -DISA_$(1) -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call KERNEL_RULE,$(isa))))

$(BUILD)/backend/cuda/%.o: private CPPFLAGS += -isystem $(CUDA_HOME)/include
$(BUILD)/backend/cuda/kernels/%.cu.o: src/backend/cuda/kernels/%.cu $(BUILD)/flags | $(CHECKED)
	@mkdir -p $(@D)
	$(SAY) nvcc $<
	$(QUIET)$(NVCC_LAUNCHER) $(NVCC) $(NVCC_FLAGS) $(NVCC_NAMES) $(if $(WERROR),-Werror all-warnings) -MD -MP -MF $(@:.o=.d) -MT $@ -c -o $@ $<

# Kernels are C++ for g++ here, with the hooks of the thread sanitizer, which the emulation answers. Products and sums become
# one operation where nvcc may make them one.
$(BUILD)/emulated/cuda/%.o: src/backend/cuda/%.c $(BUILD)/flags | $(CHECKED)
	@mkdir -p $(@D)
	$(SAY) emulate $<
	$(COMPILE) -Itests/cuda/emulation -c -o $@ $<
$(BUILD)/emulated/comm/%.o: src/comm/%.c $(BUILD)/flags | $(CHECKED)
	@mkdir -p $(@D)
	$(SAY) emulate $<
	$(COMPILE) -Itests/cuda/emulation -c -o $@ $<
EMULATED_CXX = $(QUIET)g++ $(CPPFLAGS) -Itests/cuda/emulation -MMD -MP -std=c++20 -g -Wall -Wextra -fPIE -fno-strict-aliasing \
	$(if $(WERROR),-Werror)
EMULATED_KERNEL = $(EMULATED_CXX) -O1 -mfma -ffp-contract=fast -Wno-unknown-pragmas -Wno-tsan -fsanitize=thread \
	--param tsan-instrument-func-entry-exit=0 -x c++ -c
$(BUILD)/emulated/cuda/kernels/%.o: src/backend/cuda/kernels/%.cu $(BUILD)/flags | $(CHECKED)
	@mkdir -p $(@D)
	$(SAY) emulate $<
	$(EMULATED_KERNEL) -o $@ $<
$(BUILD)/emulated/device/%.cu.o: tests/cuda/emulation/%.cu $(BUILD)/flags | $(CHECKED)
	@mkdir -p $(@D)
	$(SAY) emulate $<
	$(EMULATED_KERNEL) -o $@ $<
$(BUILD)/emulated/device/%.o: tests/cuda/emulation/%.cc $(BUILD)/flags | $(CHECKED)
	@mkdir -p $(@D)
	$(SAY) emulate $<
	$(EMULATED_CXX) -O2 -fopenmp-simd -mavx2 $(if $(SANITIZE),-fsanitize=$(SANITIZE)) -c -o $@ $<
$(BUILD)/libcuda_emulated.a: $(EMULATED_OBJECTS)
	$(SAY) archive $@
	$(QUIET)rm -f $@ && ar rcs $@ $^
# The whole program with the emulated device: make build/emulated/bertc.
# Libraries that are loaded are the program itself, which shows what the emulated device has of them.
EMULATED = -Wl,--whole-archive $(BUILD)/libcuda_emulated.a -Wl,--no-whole-archive $(BUILD)/libbertc.a \
	-Wl,--export-dynamic-symbol=cublasLt*,--export-dynamic-symbol=nccl* -lstdc++
$(BUILD)/emulated/bertc: $(BUILD)/cmd/main.o $(BUILD)/libcuda_emulated.a $(BUILD)/libbertc.a
	$(SAY) link $@
	$(QUIET)$(CC) $(LDFLAGS) -o $@ $< $(EMULATED) $(LDLIBS)
$(BUILD)/tests/cuda/%: tests/cuda/%.c $(BUILD)/libcuda_emulated.a $(BUILD)/libbertc.a $(BUILD)/flags
	@mkdir -p $(@D)
	$(SAY) test $<
	$(COMPILE) -Itests -Itests/backend -Itests/cuda/emulation $(LDFLAGS) -o $@ $< $(EMULATED) -lcmocka $(LDLIBS)

$(BUILD)/tests/cudnn/%: tests/cudnn/%.c src/backend/cuda/cudnn_graph.c $(BUILD)/libbertc.a $(BUILD)/flags
	@mkdir -p $(@D)
	$(SAY) test $<
	$(COMPILE) -Itests -isystem $(CUDA_HOME)/include -DCUDA_HOME='"$(CUDA_HOME)"' $(LDFLAGS) -o $@ $(filter %.c %.a,$^) -lcmocka $(LDLIBS)

$(BUILD)/tests/%: tests/%.c $(BUILD)/libbertc.a $(BUILD)/libbertc_nocuda.a $(BUILD)/flags
	@mkdir -p $(@D)
	$(SAY) test $<
	$(COMPILE) -Itests $(LDFLAGS) -o $@ $< $(WITHOUT_GPUS) -lcmocka $(LDLIBS)

# libbertc (include/bertc.h, docs/library.md): the same objects as a shared object that shows its own functions alone. Its tests use
# what it shows, and the rest of the program to make models.
ABI := $(shell sed -n 's/^\#define BERTC_ABI //p' include/bertc.h)
SHARED_LIBRARY = $(BUILD)/libbertc.so.$(ABI)
$(SHARED_LIBRARY): src/library/exports.map $(BUILD)/libbertc.a $(GPU_LIBRARY) $(BUILD)/gpus $(BUILD)/flags
	$(SAY) link $@
	$(QUIET)$(CC) -shared $(filter-out -pie,$(LDFLAGS)) $(NO_IDENTITY) -Wl,-z,defs,--as-needed,-soname,$(@F),--version-script,$< -o $@ \
		$(patsubst src/%.c,$(BUILD)/%.o,$(wildcard src/library/*.c)) $(WITH_GPUS) $(LDLIBS)
$(BUILD)/tests/library/%: tests/library/%.c $(SHARED_LIBRARY) $(BUILD)/libbertc.a $(BUILD)/libbertc_nocuda.a $(BUILD)/flags
	@mkdir -p $(@D)
	$(SAY) test $<
	$(COMPILE) -Itests $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/../..' -o $@ $< $(SHARED_LIBRARY) $(WITHOUT_GPUS) -lcmocka $(LDLIBS)

# The demo's, and measuring programs that are never built by default: make build/dev/NAME.
define PROGRAM_RULE
$(BUILD)/$(1)/%: $(1)/%.c $(BUILD)/libbertc.a $(GPU_LIBRARY) $(BUILD)/gpus $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(SAY) $(1) $$<
	$$(COMPILE) $$(LDFLAGS) -o $$@ $$< $(WITH_GPUS) $$(LDLIBS)
endef
$(foreach folder,demo dev bench,$(eval $(call PROGRAM_RULE,$(folder))))

# Written anew only when the flags have changed, and then all objects are. WERROR is not among them: it changes no
# object, and `make` before `make test` should not cost a second build.
FLAGS = $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(LIBS) $(foreach isa,$(ISAS),$(ISA_FLAGS_$(isa)))
$(BUILD)/flags: .force
	@mkdir -p $(@D)
	@printf '%s\n' "$$FLAGS" | cmp -s - $@ || printf '%s\n' "$$FLAGS" >$@
export FLAGS
.PHONY: .force

# A missing library is named by its package, before the compiler stumbles.
$(CHECKED): Makefile
	@mkdir -p $(@D)
	@command -v $(CC) >/dev/null || { echo "make: no compiler '$(CC)': install the package gcc, or run 'make deps'" >&2; exit 1; }
	@for library in $(LIBRARIES); do \
		echo "#include <$${library%%:*}>" | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 || { \
			echo "make: $${library%%:*} is missing: install the package $${library##*:}, or run 'make deps'" >&2; exit 1; }; \
	done
ifeq ($(HDF5)$(HDF5_INCLUDE),1)
	@echo "make: hdf5.h is missing: install the package libhdf5-dev, or give HDF5_INCLUDE= or HDF5=0" >&2; exit 1
endif
ifeq ($(MPI)$(strip $(MPIS)),1)
	@echo "make: mpi.h is missing: install the package libopenmpi-dev or libmpich-dev, or give OPENMPI_INCLUDE=, MPICH_INCLUDE= or MPI=0" >&2; exit 1
endif
ifneq ($(HAS_CUDA),)
	@for part in $(CUDA_MISSING); do \
		echo "make: $(CUDA_HOME)/$${part%%:*} is missing: install NVIDIA's package $${part##*:}, or give CUDA_HOME= or CUDA=0" >&2; exit 1; \
	done
endif
	@touch $@

deps: build/packages
build/packages: dev/deps.sh Makefile
	@sh dev/deps.sh $(PACKAGES)
	@mkdir -p build && touch $@

test: deps
	@$(MAKE) --no-print-directory HDF5=1 MPI=1 WERROR=1 run-tests

$(BUILD)/tests/cuda/test_training $(BUILD)/tests/cuda/test_ranks $(BUILD)/tests/cuda/test_limits $(BUILD)/tests/cuda/test_inference $(BUILD)/tests/cuda/test_finetuning: $(BUILD)/emulated/bertc

run-tests: $(BUILD)/bertc $(RUN_PROGRAMS)
	@BUILD=$(BUILD) STRICT=$(STRICT) sh tests/run.sh $(RUN_PROGRAMS)

test-long: deps
	@$(MAKE) --no-print-directory HDF5=1 MPI=1 WERROR=1 run-long

# Programs first, then the scripts of tests/long, each a test of its own; all run, and any that fails is the result. Status
# 77 of a script: this machine does not allow it, which is said.
run-long: $(BUILD)/bertc $(RUN_LONG)
	@failed=0; \
	$(if $(RUN_LONG),BUILD=$(BUILD) STRICT=$(STRICT) TEST_SECONDS=3600 TEST_JOBS=1 sh tests/run.sh $(RUN_LONG) || failed=1;) \
	for script in $(RUN_LONG_SCRIPTS); do \
		echo "== $$script"; BUILD=$(BUILD) BERTC=$(BUILD)/bertc sh $$script; status=$$?; \
		[ $$status -ne 77 ] || echo "SKIPPED $$script"; \
		[ $$status -eq 0 ] || [ "$$status$(STRICT)" = 77 ] || { echo "FAIL $$script"; failed=1; }; \
	done; \
	exit $$failed

test-gpu:
	@$(MAKE) --no-print-directory CUDA=1 gpu-programs
	@BUILD=$(BUILD) sh tests/gpu/run.sh

gpu-programs: $(BUILD)/bertc $(GPU_PROGRAMS) $(BUILD)/bench/step $(BUILD)/demo/world

$(BUILD)/tests/gpu/%: tests/gpu/%.c $(BUILD)/libbertc.a $(GPU_LIBRARY) $(BUILD)/gpus $(BUILD)/flags
	@mkdir -p $(@D)
	$(SAY) test $<
	$(COMPILE) -Itests -Itests/backend $(LDFLAGS) -o $@ $< -lcmocka $(WITH_GPUS) $(LDLIBS)

# Without WERROR: instrumented code looks different to the compiler, and some of its warnings are then mistaken.
test-sanitizers: deps
	@for sanitizer in address undefined thread; do \
		echo "== $$sanitizer sanitizer"; \
		$(MAKE) --no-print-directory HDF5=1 MPI=1 SANITIZE=$$sanitizer run-tests || exit 1; \
	done

# Readers of weights share files with what computes, which no target calls and no object here defines.
$(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(BUILD)/libfuzzed.a $(BUILD)/flags
	@mkdir -p $(@D)
	$(SAY) fuzz $<
	$(COMPILE) -Werror=implicit-function-declaration -Itests/fuzz $(LDFLAGS) -fsanitize=fuzzer -Wl,--unresolved-symbols=ignore-in-object-files -o $@ $< $(BUILD)/libfuzzed.a $(LDLIBS)

$(BUILD)/libfuzzed.a: $(patsubst src/%.c,$(BUILD)/%.o,$(foreach folder,$(FUZZ_FOLDERS),$(filter src/$(folder)/%,$(SOURCES))))
	$(SAY) archive $@
	$(QUIET)rm -f $@ && ar rcs $@ $^

fuzz:
	@echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -w -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null || { \
		echo "make: fuzzing needs clang with libFuzzer: install the packages clang, libclang-rt-14-dev and llvm" >&2; exit 1; }
	@$(MAKE) --no-print-directory BUILD=build-fuzz$(if $(FUZZ_COMPARISONS),-comparisons) $(FUZZ_BUILD) run-fuzz

run-fuzz: $(RUN_FUZZ)
	@FUZZ_OUT=$(FUZZ_OUT) FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_RUNS=$(FUZZ_RUNS) \
		FUZZ_FLAGS=$(if $(FUZZ_COMPARISONS),,-entropic=0) sh tests/fuzz/run.sh $(RUN_FUZZ)

fuzz-coverage:
	@$(MAKE) --no-print-directory CC=clang BUILD=build-fuzz-coverage OPTIMISE=-O1 \
		INSTRUMENT='$(FUZZ_SMALL) -fprofile-instr-generate -fcoverage-mapping' run-fuzz-coverage

run-fuzz-coverage: $(RUN_FUZZ)
	@FUZZ_OUT=$(FUZZ_OUT) sh tests/fuzz/coverage.sh $(RUN_FUZZ)

demo: deps
	@$(MAKE) --no-print-directory CUDA=$(CUDA) $(BUILD)/bertc $(DEMO_PROGRAMS)
	@BUILD=$(BUILD) CORPUS='$(CORPUS)' demo/run.sh

# PROGRAM is what `make deb` and `make tarball` link for themselves.
PROGRAM = $(BUILD)/bertc
SHARE = $(DESTDIR)$(PREFIX)/share
install: install-program install-library

install-program: $(PROGRAM) $(MPI_MODULES)
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions \
		$(SHARE)/bertc/recipes $(SHARE)/doc/bertc/docs
	install $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/bertc
	$(if $(MPI_MODULES),install -d $(DESTDIR)$(PREFIX)/lib/bertc && install -m 644 $(MPI_MODULES) $(DESTDIR)$(PREFIX)/lib/bertc)
	install -m 644 recipes/*.conf recipes/slurm.sbatch $(SHARE)/bertc/recipes
	install -m 644 README.md CHANGELOG.md LICENSE $(SHARE)/doc/bertc
	install -m 644 docs/* $(SHARE)/doc/bertc/docs
	$(PROGRAM) man >$(SHARE)/man/man1/bertc.1
	for command in $$($(PROGRAM) completion commands); do \
		$(PROGRAM) man $$command >$(SHARE)/man/man1/bertc-$$command.1 || exit 1; \
	done
	$(PROGRAM) completion bash >$(SHARE)/bash-completion/completions/bertc
	$(PROGRAM) completion zsh >$(SHARE)/zsh/site-functions/_bertc
	chmod 644 $(SHARE)/man/man1/* $(SHARE)/bash-completion/completions/bertc $(SHARE)/zsh/site-functions/_bertc

# Linked anew without symbols and debugging information. Of the libraries in the archive those that Debian has as static ones come into
# the program: libarchive's shared one brings thirty megabytes.
PACKED_LINK = $(QUIET)$(CC) $(LDFLAGS) $(NO_IDENTITY) -s -o $@ $< $(WITH_GPUS)
STATIC_LIBS = -Wl,-Bstatic -lutf8proc -lxxhash -larchive -lz -lbz2 -lzstd -llzma -lexpat -lnettle -Wl,-Bdynamic -ldnnl -lgomp -lmicrohttpd -lm
$(BUILD)/packed/bertc: $(BUILD)/cmd/main.o $(BUILD)/libbertc.a $(GPU_LIBRARY) $(BUILD)/gpus
	@mkdir -p $(@D)
	$(SAY) link $@
	$(PACKED_LINK) $(LDLIBS)
$(BUILD)/packed/portable/bertc: $(BUILD)/cmd/main.o $(BUILD)/libbertc.a $(GPU_LIBRARY) $(BUILD)/gpus
	@mkdir -p $(@D)
	$(SAY) link $@
	$(PACKED_LINK) $(STATIC_LIBS) -ldl

define TREE
	@rm -rf $(BUILD)/packed/$@-tree && mkdir -p $(BUILD)/packed/$@-tree
	+@$(MAKE) --no-print-directory -s CUDA=$(CUDA) PROGRAM=$< DESTDIR=$(BUILD)/packed/$@-tree PREFIX=$(1) install-program
	@find $(BUILD)/packed/$@-tree -name '*.so' -exec strip --strip-unneeded {} +
endef
deb: $(BUILD)/packed/bertc $(MPI_MODULES)
	$(call TREE,/usr)
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) sh packaging/deb.sh $(BUILD)/packed/$@-tree $(BUILD)/release $(VERSION)
tarball: $(BUILD)/packed/portable/bertc $(MPI_MODULES)
	$(call TREE,)
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) sh packaging/tarball.sh $(BUILD)/packed/$@-tree $(BUILD)/release $(VERSION)

# The source is that of the commit, so what is not committed is refused.
release:
	@[ -z "$$(git status --porcelain)" ] || { echo "make: commit first: the source archive is that of the last commit" >&2; exit 1; }
	@rm -rf $(BUILD)/release && mkdir -p $(BUILD)/release
	@git archive --prefix=bertc-$(VERSION)/ HEAD | xz -6 -T1 >$(BUILD)/release/bertc-$(VERSION).tar.xz
	@$(MAKE) --no-print-directory CUDA=$(CUDA) deb tarball
	@cd $(BUILD)/release && sha256sum *.deb *.tar.xz >SHA256SUMS && cat SHA256SUMS

# libbertc, and the Python package over it (python/). The wheel has what `make install` installs; auditwheel, where it is found,
# bundles the libraries that this needs.
PYTHON = python3
AUDITWHEEL = $(shell command -v patchelf >/dev/null && command -v auditwheel)
WHEEL = $(BUILD)/wheel

install-library: $(SHARED_LIBRARY)
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 include/bertc.h $(DESTDIR)$(PREFIX)/include/bertc.h
	install -m 644 $(SHARED_LIBRARY) $(DESTDIR)$(PREFIX)/lib/libbertc.so.$(VERSION)
	ln -sf libbertc.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libbertc.so.$(ABI)
	ln -sf libbertc.so.$(ABI) $(DESTDIR)$(PREFIX)/lib/libbertc.so
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' src/library/bertc.pc.in >$(DESTDIR)$(PREFIX)/lib/pkgconfig/bertc.pc

wheel: wheel-file
	@PYTHON=$(PYTHON) sh python/check_wheel.sh $(WHEEL)/dist/*.whl $(AUDITWHEEL)

# The wheel alone, unchecked.
wheel-file:
	@rm -rf $(WHEEL)
	@$(MAKE) --no-print-directory CUDA=$(CUDA) $(BUILD)/packed/bertc
	@$(MAKE) --no-print-directory CUDA=$(CUDA) PROGRAM=$(BUILD)/packed/bertc install DESTDIR= PREFIX=$(abspath $(WHEEL))/prefix >/dev/null
	@$(PYTHON) python/build_wheel.py --prefix $(WHEEL)/prefix --version $(VERSION) --out $(WHEEL)/dist $(if $(AUDITWHEEL),--auditwheel $(AUDITWHEEL))

test-python: $(SHARED_LIBRARY)
	@if $(PYTHON) -c 'import numpy' 2>/dev/null; then \
		PYTHONPATH=python BERTC_LIBRARY=$(abspath $(SHARED_LIBRARY)) $(PYTHON) -m unittest discover -s python/tests; \
	else echo "SKIPPED python/tests: $(PYTHON) has no NumPy"; fi

clean:
	rm -rf build build-*

-include $(shell test -d $(BUILD) && find $(BUILD) -name '*.d')
