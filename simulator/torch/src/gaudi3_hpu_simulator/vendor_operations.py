"""The operations of torch (`aten`) for which Habana's plugin has a kernel of its own.

Source: HabanaAI/gaudi-pytorch-bridge, release 1.19: the names in `scripts/hpu_op.yaml`, and those that
`habana_eager/` registers besides (cdist, dropout, instance_norm, linear, matmul). What came after 1.19 is not public.
"""

from __future__ import annotations

NAMES = """
__ilshift__.Scalar __ilshift__.Tensor __irshift__.Scalar __irshift__.Tensor __lshift__.Scalar __lshift__.Scalar_out
__lshift__.Tensor __lshift__.Tensor_out __rshift__.Scalar __rshift__.Scalar_out __rshift__.Tensor
__rshift__.Tensor_out _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
_adaptive_avg_pool3d_backward _add_relu.Scalar _add_relu.Tensor _add_relu.out _add_relu_.Scalar _add_relu_.Tensor
_addmm_activation _addmm_activation.out _aminmax _aminmax.dim _assert_async _cdist_forward _copy_from
_copy_from_and_resize _ctc_loss _ctc_loss.Tensor _ctc_loss_backward _ctc_loss_backward.Tensor
_deform_conv2d_backward _efficientzerotensor _foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_
_foreach_add.List _foreach_add.Scalar _foreach_add.ScalarList _foreach_add.Tensor _foreach_add_.List
_foreach_add_.Scalar _foreach_add_.ScalarList _foreach_add_.Tensor _foreach_addcdiv.Scalar
_foreach_addcdiv.ScalarList _foreach_addcdiv.Tensor _foreach_addcdiv_.Scalar _foreach_addcdiv_.ScalarList
_foreach_addcdiv_.Tensor _foreach_addcmul.Scalar _foreach_addcmul.ScalarList _foreach_addcmul.Tensor
_foreach_addcmul_.Scalar _foreach_addcmul_.ScalarList _foreach_addcmul_.Tensor _foreach_asin _foreach_asin_
_foreach_atan _foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max.List _foreach_clamp_max.Scalar
_foreach_clamp_max.ScalarList _foreach_clamp_max_.List _foreach_clamp_max_.Scalar _foreach_clamp_max_.ScalarList
_foreach_clamp_min.List _foreach_clamp_min.Scalar _foreach_clamp_min.ScalarList _foreach_clamp_min_.List
_foreach_clamp_min_.Scalar _foreach_clamp_min_.ScalarList _foreach_cos _foreach_cos_ _foreach_cosh _foreach_cosh_
_foreach_div.List _foreach_div.Scalar _foreach_div.ScalarList _foreach_div.Tensor _foreach_div_.List
_foreach_div_.Scalar _foreach_div_.ScalarList _foreach_div_.Tensor _foreach_erf _foreach_erf_ _foreach_erfc
_foreach_erfc_ _foreach_exp _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor _foreach_floor_
_foreach_frac _foreach_frac_ _foreach_lerp.List _foreach_lerp.Scalar _foreach_lerp_.List _foreach_lerp_.Scalar
_foreach_lgamma _foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_
_foreach_log2 _foreach_log2_ _foreach_log_ _foreach_maximum.List _foreach_maximum.Scalar _foreach_maximum.ScalarList
_foreach_maximum_.List _foreach_maximum_.Scalar _foreach_maximum_.ScalarList _foreach_minimum.List
_foreach_minimum.Scalar _foreach_minimum.ScalarList _foreach_minimum_.List _foreach_minimum_.Scalar
_foreach_minimum_.ScalarList _foreach_mul.List _foreach_mul.Scalar _foreach_mul.ScalarList _foreach_mul.Tensor
_foreach_mul_.List _foreach_mul_.Scalar _foreach_mul_.ScalarList _foreach_mul_.Tensor _foreach_neg _foreach_neg_
_foreach_pow.List _foreach_pow.Scalar _foreach_pow.ScalarAndTensor _foreach_pow.ScalarList _foreach_pow_.List
_foreach_pow_.Scalar _foreach_pow_.ScalarList _foreach_reciprocal _foreach_reciprocal_ _foreach_round
_foreach_round_ _foreach_sigmoid _foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_
_foreach_sinh _foreach_sinh_ _foreach_sqrt _foreach_sqrt_ _foreach_sub.List _foreach_sub.Scalar
_foreach_sub.ScalarList _foreach_sub_.List _foreach_sub_.Scalar _foreach_sub_.ScalarList _foreach_tan _foreach_tan_
_foreach_tanh _foreach_tanh_ _foreach_trunc _foreach_trunc_ _foreach_zero_ _fused_dropout _index_put_impl_
_local_scalar_dense _log_softmax _log_softmax.out _log_softmax_backward_data _log_softmax_backward_data.out
_logcumsumexp _logcumsumexp.out _masked_scale _native_batch_norm_legit _native_batch_norm_legit.no_stats
_native_batch_norm_legit_functional _native_batch_norm_legit_no_training _pdist_forward _pin_memory _prelu_kernel
_prelu_kernel_backward _reshape_alias _resize_output_ _scaled_mm _scaled_mm.out _softmax _softmax.out
_softmax_backward_data _softmax_backward_data.out _unique _unique2 _unsafe_view _upsample_nearest_exact1d.out
_upsample_nearest_exact1d_backward.grad_input _weight_norm_interface _weight_norm_interface_backward abs abs.out
abs_ acos acos.out acos_ acosh acosh.out acosh_ adaptive_avg_pool2d.out adaptive_avg_pool3d.out
adaptive_avg_pool3d_backward.grad_input add.Scalar add.Scalar_out add.Tensor add.out add_.Scalar add_.Tensor addbmm
addbmm.out addbmm_ addcdiv addcdiv.out addcdiv_ addcmul addcmul.out addcmul_ addmm addmm.out addmm_ addmv addmv.out
addmv_ addr addr.out addr_ alias all all.all_out all.dim all.dims all.dims_out all.out amax amax.out amin amin.out
aminmax aminmax.out any any.all_out any.dim any.dims any.dims_out any.out arange arange.start arange.start_out
arange.start_step argmax argmax.out argmin argmin.out as_strided as_strided_ asin asin.out asin_ asinh asinh.out
asinh_ atan atan.out atan2 atan2.out atan2_ atan_ atanh atanh.out atanh_ avg_pool2d avg_pool2d.out
avg_pool2d_backward avg_pool2d_backward.grad_input avg_pool3d avg_pool3d.out avg_pool3d_backward
avg_pool3d_backward.grad_input baddbmm baddbmm.out baddbmm_ batch_norm_backward_elemt batch_norm_backward_reduce
batch_norm_elemt batch_norm_gather_stats_with_counts batch_norm_stats bernoulli bernoulli.float_out bernoulli.out
bernoulli_.Tensor bernoulli_.float binary_cross_entropy binary_cross_entropy.out binary_cross_entropy_backward
binary_cross_entropy_backward.grad_input binary_cross_entropy_with_logits bincount bitwise_and.Scalar
bitwise_and.Tensor bitwise_and.Tensor_out bitwise_and_.Tensor bitwise_left_shift.Scalar_Tensor
bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_left_shift.Tensor_Scalar_out
bitwise_left_shift.Tensor_out bitwise_left_shift_.Tensor bitwise_left_shift_.Tensor_Scalar bitwise_not
bitwise_not.out bitwise_not_ bitwise_or.Scalar bitwise_or.Tensor bitwise_or.Tensor_out bitwise_or_.Tensor
bitwise_right_shift.Scalar_Tensor bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar
bitwise_right_shift.Tensor_Scalar_out bitwise_right_shift.Tensor_out bitwise_right_shift_.Tensor
bitwise_right_shift_.Tensor_Scalar bitwise_xor.Scalar bitwise_xor.Tensor bitwise_xor.Tensor_out bitwise_xor_.Tensor
bmm bmm.out bucketize.Scalar bucketize.Tensor bucketize.Tensor_out cast_to_fp8_hybrid cat cat.out cdist ceil
ceil.out ceil_ channel_shuffle cholesky cholesky.out clamp clamp.Tensor clamp.Tensor_out clamp.out clamp_
clamp_.Tensor clamp_max clamp_max.Tensor clamp_max.Tensor_out clamp_max.out clamp_max_ clamp_max_.Tensor clamp_min
clamp_min.Tensor clamp_min.Tensor_out clamp_min.out clamp_min_ clamp_min_.Tensor clone complex constant_pad_nd
conv2d_fp8 conv2d_fp8.scalar convolution convolution_backward convolution_backward_overrideable
convolution_overrideable copy_ copysign.Scalar copysign.Scalar_out copysign.Tensor copysign.out copysign_.Scalar
copysign_.Tensor cos cos.out cos_ cosh cosh.out cosh_ count_nonzero count_nonzero.dim_IntList cumprod cumprod.out
cumprod_ cumsum cumsum.out cumsum_ deform_conv2d dequantize_per_channel dequantize_per_tensor
dequantize_per_tensor.tensor dequantize_per_tensor.tensor2 diag.out div.Scalar div.Scalar_mode div.Scalar_mode_out
div.Scalar_out div.Tensor div.Tensor_mode div.out div.out_mode div_.Scalar div_.Scalar_mode div_.Tensor
div_.Tensor_mode dot dot.out dropout elu elu.out elu_ elu_backward elu_backward.grad_input embedding
embedding_dense_backward embedding_renorm embedding_renorm_ empty.memory_format empty_strided eq.Scalar
eq.Scalar_out eq.Tensor eq.Tensor_out eq_.Scalar eq_.Tensor equal erf erf.out erf_ erfc erfc.out erfc_ erfinv
erfinv.out erfinv_ exp exp.out exp2 exp2.out exp2_ exp_ exp_fast_math expand expm1 expm1.out expm1_ exponential
exponential.out exponential_ eye.m_out eye.out fake_quant_fp4 fill.Scalar fill.Scalar_out fill.Tensor_out
fill_.Scalar fill_.Tensor flip floor floor.out floor_ floor_divide floor_divide.Scalar floor_divide.Scalar_out
floor_divide.out floor_divide_.Tensor fmax fmax.out fmin fmin.out fmod.Scalar fmod.Scalar_out fmod.Tensor
fmod.Tensor_out fmod_.Scalar fmod_.Tensor frac frac.out frac_ frexp.Tensor frexp.Tensor_out gather gather.out
ge.Scalar ge.Scalar_out ge.Tensor ge.Tensor_out ge_.Scalar ge_.Tensor gelu gelu.out gelu_ gelu_backward
gelu_backward.grad_input geometric.out geometric_ glu glu.out glu_backward glu_backward.grad_input grid_sampler_2d
grid_sampler_3d gt.Scalar gt.Scalar_out gt.Tensor gt.Tensor_out gt_.Scalar gt_.Tensor hardshrink hardshrink.out
hardshrink_backward hardshrink_backward.grad_input hardsigmoid hardsigmoid.out hardsigmoid_ hardsigmoid_backward
hardsigmoid_backward.grad_input hardswish hardswish.out hardswish_ hardswish_backward hardtanh hardtanh.out
hardtanh_ hardtanh_backward hardtanh_backward.grad_input heaviside heaviside.out heaviside_ huber_loss
huber_loss.out huber_loss_backward huber_loss_backward.out hypot hypot.out hypot_ index.Tensor index.Tensor_out
index_add.out index_add_ index_copy index_copy.out index_copy_ index_fill.int_Scalar index_fill_.int_Scalar
index_fill_.int_Tensor index_reduce index_reduce.out index_select index_select.out instance_norm is_pinned isfinite
isin.Scalar_Tensor isin.Scalar_Tensor_out isin.Tensor_Scalar isin.Tensor_Scalar_out isin.Tensor_Tensor
isin.Tensor_Tensor_out isinf isinf.out isnan isneginf isneginf.out isposinf isposinf.out kl_div kthvalue
kthvalue.values le.Scalar le.Scalar_out le.Tensor le.Tensor_out le_.Scalar le_.Tensor leaky_relu leaky_relu.out
leaky_relu_ leaky_relu_backward leaky_relu_backward.grad_input lerp.Scalar lerp.Scalar_out lerp.Tensor
lerp.Tensor_out lerp_.Scalar lerp_.Tensor lgamma.out lift_fresh_copy linalg_cholesky_ex linalg_cholesky_ex.L
linalg_cross linalg_cross.out linalg_vector_norm linalg_vector_norm.out linear linear_backward
linspace.Scalar_Tensor linspace.Tensor_Scalar linspace.out log log.out log10 log10.out log10_ log1p log1p.out log1p_
log2 log2.out log2_ log_ log_normal_ log_sigmoid_backward log_sigmoid_backward.grad_input log_sigmoid_forward
log_sigmoid_forward.output logaddexp logaddexp.out logaddexp2 logaddexp2.out logcumsumexp logcumsumexp.out
logical_and logical_and.out logical_and_ logical_not logical_not.out logical_not_ logical_or logical_or.out
logical_or_ logical_xor logical_xor.out logical_xor_ logit logit.out logit_ logit_backward logit_backward.grad_input
logspace logspace.out lt.Scalar lt.Scalar_out lt.Tensor lt.Tensor_out lt_.Scalar lt_.Tensor masked_fill.Scalar
masked_fill.Tensor masked_fill_.Scalar masked_fill_.Tensor masked_scatter masked_scatter_ masked_select
masked_select.out matmul max max.dim max.dim_max max_pool2d_with_indices max_pool2d_with_indices.out
max_pool2d_with_indices_backward max_pool2d_with_indices_backward.grad_input max_pool3d_with_indices
max_pool3d_with_indices_backward maximum maximum.out mean mean.dim mean.out median median.dim median.dim_values min
min.dim min.dim_min minimum minimum.out mish mish.out mish_ mish_backward mm mm.out mse_loss mse_loss.out
mse_loss_backward mse_loss_backward.grad_input mul.Scalar mul.Scalar_out mul.Tensor mul.out mul_.Scalar mul_.Tensor
multi_margin_loss multi_margin_loss.out multi_margin_loss_backward multi_margin_loss_backward.grad_input
multilabel_margin_loss_backward multilabel_margin_loss_backward.grad_input multilabel_margin_loss_forward
multilabel_margin_loss_forward.output multinomial multinomial.out mv mv.out nan_to_num nan_to_num.out nan_to_num_
nansum nansum.out native_batch_norm native_batch_norm.out native_batch_norm_backward native_dropout
native_dropout_backward native_group_norm native_group_norm_backward native_layer_norm native_layer_norm_backward
ne.Scalar ne.Scalar_out ne.Tensor ne.Tensor_out ne_.Scalar ne_.Tensor neg neg.out neg_ new_zeros nextafter
nextafter.out nextafter_ nll_loss2d_backward nll_loss2d_backward.grad_input nll_loss2d_forward
nll_loss2d_forward.output nll_loss_backward nll_loss_backward.grad_input nll_loss_forward nll_loss_forward.output
nonzero nonzero.out norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype norm.ScalarOpt_dtype norm.dtype_out
norm.out normal.Tensor_Tensor normal.Tensor_Tensor_out normal.Tensor_float normal.Tensor_float_out
normal.float_Tensor normal.float_Tensor_out normal.float_float normal_ one_hot permute pin_memory pixel_shuffle
plain_index poisson pow.Scalar pow.Scalar_out pow.Tensor_Scalar pow.Tensor_Scalar_out pow.Tensor_Tensor
pow.Tensor_Tensor_out pow_.Scalar pow_.Tensor prod prod.dim_int prod.int_out put put_ quantize_per_channel
quantize_per_tensor quantize_per_tensor.tensor quantize_per_tensor.tensor2 random_ random_.from random_.to randperm
randperm.generator randperm.generator_out reciprocal reciprocal.out reciprocal_ reflection_pad1d
reflection_pad1d.out reflection_pad1d_backward reflection_pad1d_backward.grad_input reflection_pad2d
reflection_pad2d.out reflection_pad2d_backward reflection_pad2d_backward.grad_input reflection_pad3d
reflection_pad3d.out reflection_pad3d_backward reflection_pad3d_backward.grad_input relu relu.out relu_
remainder.Scalar remainder.Scalar_Tensor remainder.Scalar_out remainder.Tensor remainder.Tensor_out
remainder_.Scalar remainder_.Tensor repeat repeat_interleave.Tensor replication_pad1d replication_pad1d.out
replication_pad1d_backward replication_pad1d_backward.grad_input replication_pad2d replication_pad2d.out
replication_pad2d_backward replication_pad2d_backward.grad_input replication_pad3d replication_pad3d.out
replication_pad3d_backward replication_pad3d_backward.grad_input resize_ rms_norm rms_norm_backward rms_norm_fast
rms_norm_fast_backward roll round round.decimals round.decimals_out round.out round_ round_.decimals
rrelu_with_noise rrelu_with_noise.out rrelu_with_noise_ rrelu_with_noise_backward rsqrt rsqrt.out rsqrt_
rsqrt_fast_math rsub.Scalar rsub.Tensor scalar_tensor scatter.reduce scatter.reduce_out scatter.src scatter.src_out
scatter.value scatter.value_out scatter.value_reduce scatter.value_reduce_out scatter_.src scatter_.value
scatter_add scatter_add.out scatter_add_ scatter_reduce.two scatter_reduce.two_out scatter_reduce_.two
searchsorted.Scalar searchsorted.Scalar_out searchsorted.Tensor searchsorted.Tensor_out select.int select_backward
set_ set_.source_Storage set_.source_Storage_storage_offset set_.source_Tensor sgn sgn.out sgn_ sigmoid sigmoid.out
sigmoid_ sigmoid_backward sigmoid_backward.grad_input sign sign.out sign_ signbit signbit.out silu silu.out silu_
silu_backward.grad_input sin sin.out sin_ sinc sinc.out sinc_ sinh sinh.out sinh_ slice.Tensor slice_backward
smooth_l1_loss smooth_l1_loss.out smooth_l1_loss_backward smooth_l1_loss_backward.grad_input softmax.int softmax_fp8
softmax_fp8.Scalar softmax_fp8.Scalar_scales softplus softplus.out softplus_backward softplus_backward.grad_input
softshrink softshrink.out softshrink_backward softshrink_backward.grad_input sort sort.stable sort.values_stable
special_entr special_entr.out special_erfcx special_erfcx.out special_xlog1py special_xlog1py.other_scalar
special_xlog1py.other_scalar_out special_xlog1py.out special_xlog1py.self_scalar special_xlog1py.self_scalar_out
split.Tensor split_with_sizes sqrt sqrt.out sqrt_ sqrt_fast_math squeeze squeeze.dim squeeze.dims squeeze_
squeeze_.dim std.correction std.correction_out std_mean.correction sub.Scalar sub.Scalar_out sub.Tensor sub.out
sub_.Scalar sub_.Tensor sum sum.IntList_out sum.dim_IntList sum_fp8 t take take.out tan tan.out tan_ tanh tanh.out
tanh_ tanh_backward tanh_backward.grad_input threshold threshold.out threshold_ threshold_backward
threshold_backward.grad_input topk topk.values trace transpose.int tril tril.out tril_ tril_indices triu triu.out
triu_ triu_indices trunc trunc.out trunc_ unbind.int uniform_ unique_dim unsqueeze unsqueeze_ upsample_bicubic2d
upsample_bicubic2d.out upsample_bicubic2d.vec upsample_bicubic2d_backward upsample_bicubic2d_backward.grad_input
upsample_bilinear2d upsample_bilinear2d.out upsample_bilinear2d.vec upsample_bilinear2d_backward
upsample_bilinear2d_backward.grad_input upsample_linear1d upsample_linear1d.out upsample_linear1d.vec
upsample_linear1d_backward upsample_linear1d_backward.grad_input upsample_nearest1d upsample_nearest1d.out
upsample_nearest1d.vec upsample_nearest1d_backward upsample_nearest1d_backward.grad_input upsample_nearest2d
upsample_nearest2d.out upsample_nearest2d.vec upsample_nearest2d_backward upsample_nearest2d_backward.grad_input
upsample_nearest3d upsample_nearest3d.out upsample_nearest3d.vec upsample_nearest3d_backward
upsample_nearest3d_backward.grad_input upsample_trilinear3d upsample_trilinear3d.out var.correction
var.correction_out var_mean var_mean.correction vdot vdot.out view view.dtype where.self where.self_out
xlogy.OutScalar_Other xlogy.OutScalar_Self xlogy.OutTensor xlogy.Scalar_Other xlogy.Scalar_Self xlogy.Tensor
xlogy_.Scalar_Other xlogy_.Tensor zero_
"""

LISTED = NAMES.split()
