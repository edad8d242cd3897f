#!/usr/bin/env python3
"""Writes src/graph/onnx/onnx_schemas.inc: what each standard ONNX operator takes, from the schemas in the wheel `onnx`.

usage: generate_onnx_schemas.py > src/graph/onnx/onnx_schemas.inc
"""
import onnx.defs

MANY = 2147483647


def main():
    rows = []
    for s in onnx.defs.get_all_schemas_with_history():
        if s.domain != "" or s.deprecated:
            continue
        single = onnx.defs.OpSchema.FormalParameterOption.Single
        mask = sum(1 << i for i, p in enumerate(s.inputs) if p.option == single and i < 32)
        required = " ".join(sorted(n for n, a in s.attributes.items() if a.required))
        rows.append((s.name, s.since_version, s.min_input, min(s.max_input, MANY), s.min_output,
                     min(s.max_output, MANY), mask, required))
    print("// Made by scripts/generate_onnx_schemas.py: name, since opset, inputs (least, most), outputs (least,")
    print("// most), mask of the inputs that must not be left out, required attributes.")
    for r in sorted(rows):
        print('{"%s", %d, %d, %d, %d, %d, 0x%x, "%s"},' % r)


main()
