// Random numbers of the card: it has a Mersenne Twister of its own, the one that CPU kernels draw from.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <mutex>

namespace gaudi3_hpu {

class HpuGenerator final : public c10::GeneratorImpl {
 public:
  HpuGenerator(c10::DeviceIndex index, at::Generator host);
  static c10::DeviceType device_type() {
    return c10::DeviceType::HPU;
  }

  // The generator to hand to a CPU kernel.
  const at::Generator& host() const {
    return host_;
  }

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

 private:
  HpuGenerator* clone_impl() const override;
  at::Generator host_;
};

const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator new_generator(c10::DeviceIndex index);
const at::Generator& host_of(const at::Generator& generator);

// While it lives, CPU kernels that take no generator draw from the card's instead of the process's default one.
class DrawFrom {
 public:
  explicit DrawFrom(c10::DeviceIndex index);
  ~DrawFrom();
  DrawFrom(const DrawFrom&) = delete;
  DrawFrom& operator=(const DrawFrom&) = delete;

 private:
  std::unique_lock<std::mutex> one_at_a_time_;
  at::Generator card_;
  std::shared_ptr<at::CPUGeneratorImpl> saved_;
};

}  // namespace gaudi3_hpu
