// CPU tensors over the bytes of HPU tensors, and back: how a CPU kernel works on a card's memory without a copy.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <unordered_map>

namespace gaudi3_hpu {

// The aliases of one operation's tensors. Arguments go through `to_host`, results through `to_device`, and `sync`
// carries over what the operation did to sizes and storages in place.
class Aliases {
 public:
  at::Tensor to_host(const at::Tensor& tensor);
  c10::IValue to_host(const c10::IValue& value);

  at::Tensor to_device(const at::Tensor& tensor);
  c10::IValue to_device(const c10::IValue& value);

  void sync();

  // The card that the arguments are on: the first tensor's, else the one that a device argument names.
  std::optional<c10::Device> device() const {
    return device_;
  }
  // The first argument that is a CPU tensor with at least one dimension, if there is one.
  const at::Tensor& host_argument() const {
    return host_argument_;
  }

 private:
  using StoragePtr = c10::intrusive_ptr<c10::StorageImpl>;
  struct SharedStorage {
    StoragePtr device;
    StoragePtr host;
    void* data;
  };
  struct SharedTensor {
    at::Tensor device;
    at::Tensor host;
  };

  StoragePtr host_storage(const at::Tensor& tensor);
  StoragePtr device_storage(const at::Tensor& tensor);
  bool is_host_argument(const c10::StorageImpl* storage) const;
  void meet(c10::Device device);

  c10::SmallVector<SharedStorage, 8> storages_;
  c10::SmallVector<SharedTensor, 8> tensors_;
  c10::SmallVector<StoragePtr, 2> host_arguments_;
  // Only filled for long lists, where a linear search would be quadratic.
  std::unordered_map<const void*, size_t> tensor_index_;
  std::unordered_map<const void*, size_t> storage_index_;
  std::optional<c10::Device> device_;
  at::Tensor host_argument_;
};

// Gives a storage of a card other bytes, keeping its contents.
void resize_storage(c10::StorageImpl& storage, size_t bytes);

}  // namespace gaudi3_hpu
