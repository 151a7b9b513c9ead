module "inventory" {
  source = "../inventory"

  cloud         = "onprem"
  name          = var.name
  type          = module.cluster.type
  instance_type = module.cluster.instance_type
  nodes         = [for host in local.used : { name = host.name, private_ip = host.address, zone = host.zone }]
  monitor       = var.monitor_host == null ? null : { name = var.monitor_host.name, private_ip = var.monitor_host.address }
  ssh_user      = var.ssh_user
  jump_host     = var.jump_host
  tags          = module.cluster.tags
  allowed_cidrs = module.cluster.allowed_cidrs
}

output "cluster_endpoints" {
  description = "Every host by name: role (head, worker or monitor), private and public address, instance id and type, cards, zone, market, ssh user, and what ssh connects to."
  value       = module.inventory.cluster_endpoints
}

output "master_ip" {
  description = "Private address of the first node, where training processes meet."
  value       = module.inventory.master_ip
}

output "ansible_inventory" {
  description = "The inventory as YAML, for those who do without the inventory plugin: terraform output -raw ansible_inventory > hosts.yml."
  value       = module.inventory.ansible_inventory
}

output "cluster" {
  description = "What the cluster is: name, cloud, region, type, accelerator, cards and nodes, where checkpoints can be kept, how ssh gets there."
  value       = module.inventory.cluster
}
