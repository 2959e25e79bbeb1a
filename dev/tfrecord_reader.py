"""TFRecord files of tf.Example with packed lists, parsed by hand: records(path) is a list of {feature: values}."""
import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        assert key & 7 == 2, key
        size, at = varint(data, at)
        yield key >> 3, data[at:at + size]
        at += size


def example(payload):
    out = {}
    (_, features), = fields(payload)
    for _, entry in fields(features):
        parts = dict(fields(entry))
        (kind, values), = fields(parts[2])
        (_, packed), = fields(values)
        if kind == 2:
            out[parts[1].decode()] = list(struct.unpack(f"<{len(packed) // 4}f", packed))
            continue
        numbers, at = [], 0
        while at < len(packed):
            n, at = varint(packed, at)
            numbers.append(n)
        out[parts[1].decode()] = numbers
    return out


def records(path):
    data = open(path, "rb").read()
    at, out = 0, []
    while at < len(data):
        size, = struct.unpack_from("<Q", data, at)
        out.append(example(data[at + 12:at + 12 + size]))
        at += size + 16
    return out
