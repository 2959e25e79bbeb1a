"""tests/golden/small.onnx: a graph written by ONNX's own library, for bertc's reader (formats/onnx_reader.h).

It contains what bertc does not write: a weight as a list of numbers, a weight that is also listed as an input, packed
dimensions of rank 0, a second set of operators, a subgraph that uses a value of the enclosing graph.

    python dev/onnx_golden.py tests/golden/small.onnx
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

weight = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "weight")
bias = helper.make_tensor("bias", TensorProto.FLOAT, [3], [0.5, -1.0, 2.0])  # as a list of numbers
half = numpy_helper.from_array(np.array([1.0, 2.0], dtype=np.float16), "half")
axis = numpy_helper.from_array(np.array(1, dtype=np.int64), "axis")
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2])
flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
listed = helper.make_tensor_value_info("weight", TensorProto.FLOAT, [2, 3])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])
inner = helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)


def branch(name, operation):
    return helper.make_graph([helper.make_node(operation, ["sum"], ["inner"])], name, [], [inner])


nodes = [
    helper.make_node("MatMul", ["x", "weight"], ["product"]),
    helper.make_node("Add", ["product", "bias"], ["sum"]),
    helper.make_node("If", ["flag"], ["y"], then_branch=branch("then", "Relu"), else_branch=branch("else", "Tanh")),
]
graph = helper.make_graph(nodes, "small", [x, flag, listed], [y], [weight, bias, half, axis])
model = helper.make_model(graph, producer_name="onnx", producer_version=onnx.__version__,
                          opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
model.ir_version = 8
onnx.checker.check_model(model)
onnx.save(model, sys.argv[1])
