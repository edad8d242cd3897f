"""cp_sat_descriptors.py FILE  Writes the descriptors of CP-SAT's messages, from the wheel ortools, for protoc."""

import sys

from google.protobuf import descriptor_pb2, text_format
from ortools.sat import cp_model_pb2, sat_parameters_pb2

files = descriptor_pb2.FileDescriptorSet()
for module in (cp_model_pb2, sat_parameters_pb2):
    module.DESCRIPTOR.CopyToProto(files.file.add())
# A package of our own, so that no symbol of the generated code has the name of one in libortools.
text = text_format.MessageToString(files).replace("operations_research.sat", "heddle.cp_sat")
files = text_format.Parse(text, descriptor_pb2.FileDescriptorSet())
with open(sys.argv[1], "wb") as out:
    out.write(files.SerializeToString())
