// The same as denoise.c, in C++17.
#include "denoise.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <vector>

int main() {
  const auto frames = denoise_ports(nullptr)->frames;
  const auto align = std::align_val_t{denoise_alignment()};
  const auto free = [align](void *p) { ::operator delete(p, align); };
  const std::unique_ptr<void, decltype(free)> memory(::operator new(denoise_size(), align), free);
  denoise_stream *stream = nullptr;
  if (denoise_init(memory.get(), denoise_size(), &stream) != DENOISE_OK) return 1;
  std::vector<std::int16_t> sound(frames);
  std::vector<float> in(frames), out(frames);
  const void *inputs[] = {in.data()};
  void *outputs[] = {out.data()};
  for (;;) {
    const std::size_t count = std::fread(sound.data(), 2, frames, stdin);
    std::transform(sound.begin(), sound.begin() + count, in.begin(), [](auto v) { return v / 32768.0f; });
    do {
      const int code = count == frames ? denoise_step(stream, inputs, outputs)
                                       : denoise_flush(stream, inputs, &count, outputs);
      if (code != DENOISE_OK) return code == DENOISE_ENDED ? 0 : 1;
      std::size_t first = 0;
      const std::size_t valid = denoise_valid(stream, 0, &first);
      std::transform(out.begin() + first, out.begin() + first + valid, sound.begin(),
                     [](float v) { return std::int16_t(32767.0f * std::clamp(v, -1.0f, 1.0f)); });
      std::fwrite(sound.data(), 2, valid, stdout);
    } while (count < frames);
  }
}
