# Written by terraform/generate.py from terraform/modules/ibm, where each variable is checked.

module "cluster" {
  source = "../modules/ibm"

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
  resource_group            = var.resource_group
  image                     = var.image
  ssh_user                  = var.ssh_user
  capacity                  = var.capacity
  reservation_id            = var.reservation_id
  cluster_network_profile   = var.cluster_network_profile
  cluster_network_subnets   = var.cluster_network_subnets
  internet                  = var.internet
  monitor_instance_type     = var.monitor_instance_type
  encryption_key_crn        = var.encryption_key_crn
  destroy_checkpoints       = var.destroy_checkpoints
  flow_logs                 = var.flow_logs
}
