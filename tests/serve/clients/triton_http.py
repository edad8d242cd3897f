"""What a user of tritonclient does over HTTP. Usage: triton_http.py HOST:PORT MODEL [FILE.onnx]

Every call is a plain use of the public client. With FILE (and onnxruntime) the outputs are compared with that
model's own. Exit status 0 when all of it holds; prints what it did.
"""

import asyncio
import sys

import numpy as np
import tritonclient.http as client
import tritonclient.http.aio as aio
from tritonclient.utils import InferenceServerException, triton_to_np_dtype


def random_inputs(metadata, rows, seed):
    """One array for each input; -1, the batch's dimension, becomes `rows`."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for tensor in metadata["inputs"]:
        shape = [rows if d == -1 else d for d in tensor["shape"]]
        arrays[tensor["name"]] = rng.random(shape).astype(triton_to_np_dtype(tensor["datatype"]))
    return arrays


def as_inputs(module, metadata, arrays, binary=True):
    inputs = []
    for tensor in metadata["inputs"]:
        value = arrays[tensor["name"]]
        item = module.InferInput(tensor["name"], list(value.shape), tensor["datatype"])
        item.set_data_from_numpy(value, binary_data=binary)
        inputs.append(item)
    return inputs


def expect_error(status, call):
    try:
        call()
    except InferenceServerException as error:
        assert str(status) in str(error.status()), f"expected {status}, got {error.status()}: {error.message()}"
        assert error.message(), "an error without a message"
        return
    raise AssertionError(f"expected status {status}, but the call went through")


def reference(path, arrays):
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, arrays)))


def main():
    address, model = sys.argv[1], sys.argv[2]
    server = client.InferenceServerClient(address, concurrency=4)
    assert server.is_server_live() and server.is_server_ready() and server.is_model_ready(model)
    assert not server.is_model_ready("no-such-model")
    assert server.get_server_metadata()["name"] == "heddle"
    metadata = server.get_model_metadata(model)
    config = server.get_model_config(model)
    assert [t["name"] for t in config["input"]] == [t["name"] for t in metadata["inputs"]]
    assert any(m["name"] == model and m["state"] == "READY" for m in server.get_model_repository_index())
    outputs = [t["name"] for t in metadata["outputs"]]

    rows = min(3, max(1, config["max_batch_size"]))
    arrays = random_inputs(metadata, rows, 1)
    whole = server.infer(model, as_inputs(client, metadata, arrays), request_id="first")
    assert whole.get_response()["id"] == "first"
    timing = whole.get_response()["parameters"]
    assert timing["total_us"] >= timing["compute_us"] > 0 and timing["batch_size"] >= 1
    for tensor in metadata["outputs"]:
        value = whole.as_numpy(tensor["name"])
        assert list(value.shape) == [rows if d == -1 else d for d in tensor["shape"]]

    # The same by JSON in and out, with named outputs, and asynchronously.
    wanted = [client.InferRequestedOutput(name, binary_data=False) for name in outputs]
    by_json = server.infer(model, as_inputs(client, metadata, arrays, binary=False), outputs=wanted)
    later = [server.async_infer(model, as_inputs(client, metadata, arrays), request_id=str(i)) for i in range(8)]
    answers = [handle.get_result() for handle in later]
    assert [a.get_response()["id"] for a in answers] == [str(i) for i in range(8)]
    for name in outputs:
        np.testing.assert_allclose(by_json.as_numpy(name), whole.as_numpy(name), rtol=1e-3, atol=1e-4)
        for answer in answers:
            np.testing.assert_allclose(answer.as_numpy(name), whole.as_numpy(name), rtol=1e-3, atol=1e-4)

    if len(sys.argv) > 3:
        for name, value in reference(sys.argv[3], arrays).items():
            np.testing.assert_allclose(whole.as_numpy(name), value, rtol=1e-3, atol=1e-4)
        print("outputs equal onnxruntime's")

    async def with_aio():
        async with aio.InferenceServerClient(address) as other:
            tasks = [other.infer(model, as_inputs(aio, metadata, arrays)) for _ in range(4)]
            for answer in await asyncio.gather(*tasks):
                value = answer.as_numpy(outputs[0])
                np.testing.assert_allclose(value, whole.as_numpy(outputs[0]), rtol=1e-3, atol=1e-4)

    asyncio.run(with_aio())

    # Mistakes are told as such.
    expect_error(404, lambda: server.infer("no-such-model", as_inputs(client, metadata, arrays)))
    expect_error(404, lambda: server.infer(model, as_inputs(client, metadata, arrays), model_version="77"))
    expect_error(400, lambda: server.infer(model, []))
    wrong = client.InferInput(metadata["inputs"][0]["name"], [1, 2], "FP32")
    wrong.set_data_from_numpy(np.zeros([1, 2], np.float32))
    expect_error(400, lambda: server.infer(model, [wrong]))
    # A deadline that nobody can meet.
    expect_error(504, lambda: server.infer(model, as_inputs(client, metadata, arrays), timeout=1))

    statistics = server.get_inference_statistics(model)["model_stats"][0]
    assert statistics["inference_stats"]["success"]["count"] == 14, statistics
    assert statistics["inference_stats"]["fail"]["count"] == 1, statistics
    assert statistics["inference_count"] == 14 * rows, statistics

    server.unload_model(model)
    assert not server.is_model_ready(model)
    expect_error(404, lambda: server.infer(model, as_inputs(client, metadata, arrays)))
    assert [m["state"] for m in server.get_model_repository_index() if m["name"] == model] == ["UNAVAILABLE"]
    server.load_model(model)
    assert server.is_model_ready(model)
    again = server.infer(model, as_inputs(client, metadata, arrays))
    np.testing.assert_allclose(again.as_numpy(outputs[0]), whole.as_numpy(outputs[0]), rtol=1e-3, atol=1e-4)
    print("all calls of tritonclient.http hold")


if __name__ == "__main__":
    main()
