"""What a user of tritonclient does over gRPC. Usage: triton_grpc.py HOST:PORT MODEL

Every call is a plain use of the public client. Exit status 0 when all of it holds; prints what it did.
"""

import asyncio
import queue
import sys

import numpy as np
import tritonclient.grpc as client
import tritonclient.grpc.aio as aio
from tritonclient.utils import InferenceServerException, triton_to_np_dtype


def as_inputs(module, metadata, arrays):
    inputs = []
    for tensor in metadata["inputs"]:
        value = arrays[tensor["name"]]
        item = module.InferInput(tensor["name"], list(value.shape), tensor["datatype"])
        item.set_data_from_numpy(value)
        inputs.append(item)
    return inputs


def expect_error(status, call):
    try:
        call()
    except InferenceServerException as error:
        assert status in str(error.status()), f"expected {status}, got {error.status()}: {error.message()}"
        assert error.message(), "an error without a message"
        return
    raise AssertionError(f"expected {status}, but the call went through")


def main():
    address, model = sys.argv[1], sys.argv[2]
    server = client.InferenceServerClient(address)
    assert server.is_server_live() and server.is_server_ready() and server.is_model_ready(model)
    assert not server.is_model_ready("no-such-model")
    assert server.get_server_metadata().name == "heddle"
    metadata = server.get_model_metadata(model, as_json=True)
    outputs = [t["name"] for t in metadata["outputs"]]
    rng = np.random.default_rng(1)
    arrays = {}
    for tensor in metadata["inputs"]:
        shape = [2 if int(d) == -1 else int(d) for d in tensor["shape"]]
        arrays[tensor["name"]] = rng.random(shape).astype(triton_to_np_dtype(tensor["datatype"]))

    whole = server.infer(model, as_inputs(client, metadata, arrays), request_id="first")
    assert whole.get_response().id == "first"
    assert whole.get_response().parameters["total_us"].double_param > 0
    wanted = [client.InferRequestedOutput(outputs[0])]
    part = server.infer(model, as_inputs(client, metadata, arrays), outputs=wanted, client_timeout=60)
    assert [o.name for o in part.get_response().outputs] == outputs[:1]
    np.testing.assert_array_equal(part.as_numpy(outputs[0]), whole.as_numpy(outputs[0]))

    answers = queue.Queue()
    for i in range(8):
        server.async_infer(
            model,
            as_inputs(client, metadata, arrays),
            callback=lambda result, error: answers.put((result, error)),
            request_id=str(i),
        )
    seen = set()
    for _ in range(8):
        result, error = answers.get(timeout=60)
        assert error is None, error
        seen.add(result.get_response().id)
        np.testing.assert_allclose(result.as_numpy(outputs[0]), whole.as_numpy(outputs[0]), rtol=1e-3, atol=1e-4)
    assert seen == {str(i) for i in range(8)}

    async def with_aio():
        async with aio.InferenceServerClient(address) as other:
            assert await other.is_server_live()
            tasks = [other.infer(model, as_inputs(aio, metadata, arrays)) for _ in range(4)]
            for answer in await asyncio.gather(*tasks):
                value = answer.as_numpy(outputs[0])
                np.testing.assert_allclose(value, whole.as_numpy(outputs[0]), rtol=1e-3, atol=1e-4)

    asyncio.run(with_aio())

    # Mistakes are told as such.
    expect_error("NOT_FOUND", lambda: server.infer("no-such-model", as_inputs(client, metadata, arrays)))
    expect_error("NOT_FOUND", lambda: server.infer(model, as_inputs(client, metadata, arrays), model_version="77"))
    expect_error("INVALID_ARGUMENT", lambda: server.infer(model, []))
    wrong = client.InferInput(metadata["inputs"][0]["name"], [1, 2], "FP32")
    wrong.set_data_from_numpy(np.zeros([1, 2], np.float32))
    expect_error("INVALID_ARGUMENT", lambda: server.infer(model, [wrong]))
    expect_error("DEADLINE_EXCEEDED", lambda: server.infer(model, as_inputs(client, metadata, arrays), timeout=1))

    config = server.get_model_config(model).config
    assert config.name == model and [o.name for o in config.output] == outputs, config
    statistics = server.get_inference_statistics(model).model_stats[0]
    assert statistics.inference_stats.success.count == 14, statistics
    assert statistics.inference_stats.fail.count == 1, statistics
    index = server.get_model_repository_index(as_json=True)["models"]
    assert any(m["name"] == model and m["state"] == "READY" for m in index)
    server.unload_model(model)
    assert not server.is_model_ready(model)
    server.load_model(model)
    again = server.infer(model, as_inputs(client, metadata, arrays))
    np.testing.assert_allclose(again.as_numpy(outputs[0]), whole.as_numpy(outputs[0]), rtol=1e-3, atol=1e-4)
    server.close()
    print("all calls of tritonclient.grpc hold")


if __name__ == "__main__":
    main()
