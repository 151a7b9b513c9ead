locals {
  machines = {
    for name, machine in azurerm_linux_virtual_machine.host : name => {
      name        = name
      private_ip  = machine.private_ip_address
      instance_id = machine.virtual_machine_id
      zone        = var.zone == "" ? null : var.zone
      market      = var.capacity
      type        = machine.size
    }
  }
}

module "inventory" {
  source = "../inventory"

  cloud             = "azure"
  name              = var.name
  region            = var.region
  type              = module.cluster.type
  instance_type     = module.cluster.instance_type
  nodes             = [for name in module.cluster.node_names : local.machines[name]]
  monitor           = module.cluster.monitor_name == null ? null : local.machines[module.cluster.monitor_name]
  ssh_user          = var.ssh_user
  jump_host         = var.jump_host
  checkpoint_target = "az://${azurerm_storage_account.checkpoints.name}/${azurerm_storage_container.checkpoints.name}/${module.cluster.checkpoint_prefix}"
  tags              = local.tags
  allowed_cidrs     = module.cluster.allowed_cidrs
}

output "cluster_endpoints" {
  description = "Every host by name: role (head, worker or monitor), private and public address, instance id and type, cards, zone, market, ssh user, and what ssh connects to."
  value       = module.inventory.cluster_endpoints
}

output "master_ip" {
  description = "Private address of the first node, where training processes meet."
  value       = module.inventory.master_ip
}

output "cluster" {
  description = "What the cluster is: name, cloud, region, type, accelerator, cards and nodes, where checkpoints can be kept, how ssh gets there."
  value       = module.inventory.cluster
}
