# Written by terraform/generate.py from terraform/modules/aws, where each variable is checked.

module "cluster" {
  source = "../modules/aws"

  cluster_size              = var.cluster_size
  instance_type             = var.instance_type
  accept_other_accelerators = var.accept_other_accelerators
  extra_instance_types      = var.extra_instance_types
  name                      = var.name
  tags                      = var.tags
  allowed_cidrs             = var.allowed_cidrs
  ssh_public_key            = var.ssh_public_key
  jump_host                 = var.jump_host
  dedicated_monitor         = var.dedicated_monitor
  nvme_mount                = var.nvme_mount
  root_volume_gb            = var.root_volume_gb
  network_cidr              = var.network_cidr
  max_hourly_usd            = var.max_hourly_usd
  region                    = var.region
  availability_zone         = var.availability_zone
  capacity                  = var.capacity
  capacity_reservation_id   = var.capacity_reservation_id
  on_demand_nodes           = var.on_demand_nodes
  spot_max_price            = var.spot_max_price
  autoscaling               = var.autoscaling
  efa                       = var.efa
  image_id                  = var.image_id
  image_parameter           = var.image_parameter
  ssh_user                  = var.ssh_user
  connection                = var.connection
  internet                  = var.internet
  monitor_instance_type     = var.monitor_instance_type
  volume_kms_key_arn        = var.volume_kms_key_arn
  keep_checkpoints_days     = var.keep_checkpoints_days
  destroy_checkpoints       = var.destroy_checkpoints
  access_log_bucket         = var.access_log_bucket
  monthly_budget_usd        = var.monthly_budget_usd
  budget_emails             = var.budget_emails
}
