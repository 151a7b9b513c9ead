# Written by terraform/generate.py from terraform/modules/onprem, where each variable is checked.

module "cluster" {
  source = "../modules/onprem"

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
  hosts                     = var.hosts
  hosts_file                = var.hosts_file
  monitor_host              = var.monitor_host
  ssh_user                  = var.ssh_user
}
