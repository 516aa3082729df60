# SPDX-License-Identifier: Apache-2.0
"""cuda.py - a program on the GPU, made with the driver alone: no toolkit is needed.

    python3 cuda.py UUID

runs until its input ends. It says "ready" when it has its context and, for
each line that it reads, does what is asked and says when, in seconds of the
monotonic clock: "allocate BYTES" or "burn SECONDS" (all multiprocessors busy)."""

import ctypes
import sys
import time

# Four chains of multiplications and additions, which stay finite, for so many rounds.
PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry burn(.param .u64 out, .param .u32 rounds)
{
    .reg .pred %more;
    .reg .f32 %near_one, %step, %a, %b, %c, %d;
    .reg .b32 %rounds, %thread, %round;
    .reg .b64 %out, %place;
    ld.param.u64 %out, [out];
    ld.param.u32 %rounds, [rounds];
    mov.u32 %thread, %tid.x;
    cvt.rn.f32.u32 %step, %thread;
    mov.f32 %near_one, 0f3F7FBE77;
    mov.f32 %a, %step;
    mov.f32 %b, %near_one;
    mov.f32 %c, %step;
    mov.f32 %d, %near_one;
    mov.u32 %round, 0;
again:
    fma.rn.f32 %a, %a, %near_one, %step;
    fma.rn.f32 %b, %b, %near_one, %step;
    fma.rn.f32 %c, %c, %near_one, %a;
    fma.rn.f32 %d, %d, %near_one, %b;
    add.u32 %round, %round, 1;
    setp.lt.u32 %more, %round, %rounds;
    @%more bra again;
    add.f32 %c, %c, %d;
    cvta.to.global.u64 %out, %out;
    mul.wide.u32 %place, %thread, 4;
    add.u64 %out, %out, %place;
    st.global.f32 [%out], %c;
    ret;
}
"""
BLOCKS, THREADS, ROUNDS = 2048, 256, 20000


class Cuda:
    def __init__(self, uuid):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.context, self.scratch, self.kernel = (ctypes.c_void_p() for _ in range(3))
        self.call("cuInit", 0)
        device = self.find(uuid)
        self.call("cuCtxCreate_v2", ctypes.byref(self.context), 0, device)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise OSError(f"{name} answers {status}")

    def find(self, uuid):
        """CUDA counts in an order of its own."""
        count, device, words = ctypes.c_int(), ctypes.c_int(), (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        for index in range(count.value):
            self.call("cuDeviceGet", ctypes.byref(device), index)
            self.call("cuDeviceGetUuid", words, device)
            if bytes(words).hex() == uuid.removeprefix("GPU-").replace("-", ""):
                return device
        raise OSError(f"CUDA does not see {uuid}")

    def allocate(self, size):
        address = ctypes.c_void_p()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def prepare(self):
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), PTX)
        self.call("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"burn")
        self.scratch = self.allocate(4 * THREADS)

    def burn(self, seconds):
        """When it began, and when the last kernel ended."""
        rounds = ctypes.c_uint(ROUNDS)
        pointers = (ctypes.c_void_p * 2)(ctypes.addressof(self.scratch),
                                         ctypes.addressof(rounds))
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            self.call("cuLaunchKernel", self.kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, None,
                      pointers, None)
            self.call("cuCtxSynchronize")
        return began, time.monotonic()


def main():
    cuda = Cuda(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        word, number = line.split()
        if word == "allocate":
            cuda.allocate(int(number))
            print("allocated", flush=True)
        else:
            if not cuda.kernel:
                cuda.prepare()
            print("burned", *cuda.burn(float(number)), flush=True)


if __name__ == "__main__":
    main()
