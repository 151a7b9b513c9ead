#include "generator.h"

namespace gaudi3_hpu {
namespace {

at::CPUGeneratorImpl& host_impl(const at::Generator& generator) {
  return *static_cast<at::CPUGeneratorImpl*>(generator.unsafeGetGeneratorImpl());
}

void assign(at::CPUGeneratorImpl& target, at::CPUGeneratorImpl& source) {
  target.set_engine(source.engine());
  target.set_next_float_normal_sample(source.next_float_normal_sample());
  target.set_next_double_normal_sample(source.next_double_normal_sample());
}

}  // namespace

HpuGenerator::HpuGenerator(c10::DeviceIndex index, at::Generator host)
    : c10::GeneratorImpl(
          c10::Device(c10::DeviceType::HPU, index),
          c10::DispatchKeySet(c10::DispatchKey::HPU)),
      host_(std::move(host)) {}

void HpuGenerator::set_current_seed(uint64_t seed) {
  host_.set_current_seed(seed);
}

void HpuGenerator::set_offset(uint64_t offset) {
  host_.set_offset(offset);
}

uint64_t HpuGenerator::get_offset() const {
  return host_.get_offset();
}

uint64_t HpuGenerator::current_seed() const {
  return host_.current_seed();
}

uint64_t HpuGenerator::seed() {
  return host_impl(host_).seed();
}

void HpuGenerator::set_state(const c10::TensorImpl& state) {
  host_impl(host_).set_state(state);
}

c10::intrusive_ptr<c10::TensorImpl> HpuGenerator::get_state() const {
  return host_impl(host_).get_state();
}

HpuGenerator* HpuGenerator::clone_impl() const {
  return new HpuGenerator(device().index(), host_.clone());
}

at::Generator new_generator(c10::DeviceIndex) {
  return at::make_generator<HpuGenerator>(c10::DeviceIndex{0}, at::detail::createCPUGenerator());
}

const at::Generator& default_generator(c10::DeviceIndex) {
  static auto* generator = new at::Generator(new_generator(0));
  return *generator;
}

const at::Generator& host_of(const at::Generator& generator) {
  return static_cast<HpuGenerator*>(generator.unsafeGetGeneratorImpl())->host();
}

DrawFrom::DrawFrom(c10::DeviceIndex index) {
  static std::mutex* mutex = new std::mutex();
  one_at_a_time_ = std::unique_lock<std::mutex>(*mutex);
  card_ = host_of(default_generator(index));
  auto& process = host_impl(at::detail::getDefaultCPUGenerator());
  saved_ = process.clone();
  assign(process, host_impl(card_));
}

DrawFrom::~DrawFrom() {
  auto& process = host_impl(at::detail::getDefaultCPUGenerator());
  assign(host_impl(card_), process);
  assign(process, *saved_);
}

}  // namespace gaudi3_hpu
