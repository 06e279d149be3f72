// The same as denoise.c, in C++17.
#include "denoise.h"
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>
int main() {
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(denoise_alignment(), denoise_size()), std::free);
  denoise_stream *stream = nullptr;
  if (denoise_init(memory.get(), denoise_size(), &stream) != DENOISE_OK) return 1;
  const auto frames = denoise_ports(nullptr)->frames;
  std::vector<std::int16_t> sound(frames);
  std::vector<float> in(frames), out(frames);
  const void *inputs[] = {in.data()};
  void *outputs[] = {out.data()};
  for (std::size_t first = 0;;) {
    const auto count = std::fread(sound.data(), 2, frames, stdin);
    std::transform(sound.begin(), sound.begin() + count, in.begin(), [](auto v) { return v / 32768.0f; });
    do {
      const int code = count == frames ? denoise_step(stream, inputs, outputs) : denoise_flush(stream, inputs, &count, outputs);
      if (code != DENOISE_OK) return code == DENOISE_ENDED ? 0 : 1;
      const auto valid = denoise_valid(stream, 0, &first);
      std::transform(out.begin() + first, out.begin() + first + valid, sound.begin(),
                     [](float v) { return std::int16_t(32767.0f * std::clamp(v, -1.0f, 1.0f)); });
      std::fwrite(sound.data(), 2, valid, stdout);
    } while (count < frames);
  }
}
