#include "alias.h"

#include <ATen/core/List.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cstring>

#include "allocator.h"
#include "generator.h"
#include "runtime.h"

namespace gaudi3_hpu {
namespace {

constexpr size_t kLinear = 32;

void refuse_fp8(at::ScalarType type) {
  TORCH_CHECK(
      !c10::isFloat8Type(type), "The simulated HPU has no ", type,
      ": Gaudi's fp8 arithmetic is not the CPU's. Use bfloat16, or run this on hardware.");
}

void copy_layout(const at::Tensor& from, const at::Tensor& to) {
  auto* impl = to.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
  // Conjugation and negation are kept as marks; kernels that know them see them.
  if (from.is_conj()) {
    impl->_set_conj(true);
  }
  if (from.is_neg()) {
    impl->_set_neg(true);
  }
}

at::Tensor make(c10::intrusive_ptr<c10::StorageImpl> storage, c10::DispatchKey key, const at::Tensor& like) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(storage)), c10::DispatchKeySet(key), like.dtype());
  copy_layout(like, made);
  return made;
}

template <class Items, class Index, class Key>
int64_t find(const Items& items, Index& index, const void* wanted, Key key) {
  if (items.size() <= kLinear) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (key(items[i]) == wanted) {
        return static_cast<int64_t>(i);
      }
    }
    return -1;
  }
  for (size_t i = index.size(); i < items.size(); ++i) {
    index.emplace(key(items[i]), i);
  }
  const auto found = index.find(wanted);
  return found == index.end() ? -1 : static_cast<int64_t>(found->second);
}

}  // namespace

void Aliases::meet(c10::Device device) {
  TORCH_CHECK(
      !device_.has_value() || *device_ == device, "Expected all tensors to be on the same device, but found at least two: ",
      *device_, " and ", device, ".");
  device_ = device;
}

Aliases::StoragePtr Aliases::host_storage(const at::Tensor& tensor) {
  auto* device = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  const auto found = find(storages_, storage_index_, device, [](const auto& s) { return s.device.get(); });
  if (found >= 0) {
    return storages_[found].host;
  }
  // Not const: a lazily cloned storage becomes one of its own first, as the operation may write.
  void* data = device->mutable_data();
  auto host = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), device->nbytes(), at::DataPtr(data, c10::Device(c10::DeviceType::CPU)),
      c10::GetCPUAllocator(), /*resizable=*/true);
  storages_.push_back({StoragePtr::reclaim_copy(device), host, data});
  return host;
}

at::Tensor Aliases::to_host(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return tensor;
  }
  if (!tensor.is_hpu()) {
    if (tensor.has_storage()) {
      host_arguments_.push_back(StoragePtr::reclaim_copy(tensor.storage().unsafeGetStorageImpl()));
    }
    if (tensor.dim() > 0 && !host_argument_.defined()) {
      host_argument_ = tensor;
    }
    return tensor;
  }
  TORCH_CHECK(
      tensor.layout() == at::kStrided && !tensor.is_quantized(),
      "The simulated HPU has dense tensors only, no sparse or quantized ones.");
  meet(tensor.device());
  const auto found = find(tensors_, tensor_index_, tensor.unsafeGetTensorImpl(), [](const auto& t) {
    return static_cast<const void*>(t.device.unsafeGetTensorImpl());
  });
  if (found >= 0) {
    return tensors_[found].host;
  }
  refuse_fp8(tensor.scalar_type());
  auto host = make(host_storage(tensor), c10::DispatchKey::CPU, tensor);
  tensors_.push_back({tensor, host});
  return host;
}

c10::IValue Aliases::to_host(const c10::IValue& value) {
  if (value.isTensor()) {
    return to_host(value.toTensor());
  }
  if (value.isDevice() && value.toDevice().is_hpu()) {
    const auto device = resolve(value.toDevice());
    if (!device_.has_value()) {
      device_ = device;
    }
    return c10::Device(c10::DeviceType::CPU);
  }
  if (value.isGenerator() && value.toGenerator().defined() && value.toGenerator().device().is_hpu()) {
    return host_of(value.toGenerator());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> converted;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      converted.push_back(to_host(tensor));
    }
    return converted;
  }
  if (value.isList()) {
    const auto kind = value.toList().elementType()->kind();
    if (kind == c10::TypeKind::ListType || kind == c10::TypeKind::OptionalType) {  // Tensor[][], Tensor?[]
      c10::List<c10::IValue> converted(value.toList().elementType());
      for (const c10::IValue& element : value.toListRef()) {
        converted.push_back(to_host(element));
      }
      return converted;
    }
  }
  return value;
}

bool Aliases::is_host_argument(const c10::StorageImpl* storage) const {
  return std::any_of(host_arguments_.begin(), host_arguments_.end(), [storage](const auto& argument) {
    return argument.get() == storage;
  });
}

Aliases::StoragePtr Aliases::device_storage(const at::Tensor& tensor) {
  auto* host = tensor.storage().unsafeGetStorageImpl();
  for (const auto& shared : storages_) {
    if (shared.host.get() == host) {
      return shared.device;
    }
  }
  const auto bytes = host->nbytes();
  at::DataPtr data;
  if (tensor.use_count() == 1 && tensor.storage().use_count() == 1) {
    data = host->set_data_ptr(at::DataPtr());
    data.unsafe_set_device(*device_);
  } else {
    // Someone else holds it as well: it lives as long as both.
    auto* owner = new StoragePtr(StoragePtr::reclaim_copy(host));
    data = at::DataPtr(
        host->mutable_data(), owner, [](void* held) { delete static_cast<StoragePtr*>(held); }, *device_);
  }
  auto device = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, std::move(data), device_allocator(), /*resizable=*/true);
  storages_.push_back({device, StoragePtr::reclaim_copy(host), nullptr});
  return device;
}

at::Tensor Aliases::to_device(const at::Tensor& tensor) {
  if (!tensor.defined() || !device_.has_value()) {
    return tensor;
  }
  TORCH_CHECK(
      tensor.layout() == at::kStrided, "The simulated HPU has dense tensors only, and this would make a ", tensor.layout(),
      " one: make it on the CPU.");
  TORCH_CHECK(!tensor.is_quantized(), "The simulated HPU has no quantized tensors: quantize on the CPU.");
  if (!tensor.is_cpu()) {
    return tensor;
  }
  for (const auto& shared : tensors_) {
    if (shared.host.is_same(tensor)) {
      return shared.device;
    }
  }
  if (!host_arguments_.empty() && is_host_argument(tensor.storage().unsafeGetStorageImpl())) {
    return tensor;
  }
  refuse_fp8(tensor.scalar_type());
  return make(device_storage(tensor), c10::DispatchKey::HPU, tensor);
}

c10::IValue Aliases::to_device(const c10::IValue& value) {
  if (value.isTensor()) {
    return to_device(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> converted;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      converted.push_back(to_device(tensor));
    }
    return converted;
  }
  if (value.isList() && value.toList().elementType()->kind() == c10::TypeKind::ListType) {
    c10::List<c10::IValue> converted(value.toList().elementType());
    for (const c10::IValue& element : value.toListRef()) {
      converted.push_back(to_device(element));
    }
    return converted;
  }
  return value;
}

void Aliases::sync() {
  for (auto& shared : storages_) {
    if (shared.data == nullptr && shared.host->nbytes() == shared.device->nbytes()) {
      continue;
    }
    if (shared.host->data() == shared.data) {
      continue;
    }
    auto data = shared.host->set_data_ptr(at::DataPtr());
    data.unsafe_set_device(shared.device->device());
    shared.device->set_data_ptr_noswap(std::move(data));
    shared.device->set_nbytes(shared.host->nbytes());
  }
  for (auto& shared : tensors_) {
    const auto& device = shared.device;
    const auto& host = shared.host;
    if (device.sizes() != host.sizes() || device.strides() != host.strides() ||
        device.storage_offset() != host.storage_offset()) {
      device.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
    }
  }
}

void resize_storage(c10::StorageImpl& storage, size_t bytes) {
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  const c10::DeviceGuard guard(storage.device());
  auto data = device_allocator()->allocate(bytes);
  const auto kept = std::min(bytes, storage.nbytes());
  if (kept > 0) {
    std::memcpy(data.get(), storage.data(), kept);
  }
  storage.set_data_ptr_noswap(std::move(data));
  storage.set_nbytes(bytes);
}

}  // namespace gaudi3_hpu
