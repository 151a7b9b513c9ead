# Written by terraform/generate.py from terraform/modules/azure, where each variable is checked.

module "cluster" {
  source = "../modules/azure"

  cluster_size              = var.cluster_size
  instance_type             = var.instance_type
  accept_other_accelerators = var.accept_other_accelerators
  accept_withdrawn_type     = var.accept_withdrawn_type
  extra_instance_types      = var.extra_instance_types
  name                      = var.name
  tags                      = var.tags
  allowed_cidrs             = var.allowed_cidrs
  ssh_public_key            = var.ssh_public_key
  jump_host                 = var.jump_host
  teardown                  = var.teardown
  dedicated_monitor         = var.dedicated_monitor
  nvme_mount                = var.nvme_mount
  root_volume_gb            = var.root_volume_gb
  network_cidr              = var.network_cidr
  max_hourly_usd            = var.max_hourly_usd
  node_usd_per_hour         = var.node_usd_per_hour
  ttl                       = var.ttl
  idle_shutdown             = var.idle_shutdown
  region                    = var.region
  zone                      = var.zone
  capacity                  = var.capacity
  spot_max_price            = var.spot_max_price
  image                     = var.image
  ssh_user                  = var.ssh_user
  monitor_instance_type     = var.monitor_instance_type
  accelerated_networking    = var.accelerated_networking
  encryption_at_host        = var.encryption_at_host
  keep_checkpoints_days     = var.keep_checkpoints_days
  destroy_checkpoints       = var.destroy_checkpoints
}
