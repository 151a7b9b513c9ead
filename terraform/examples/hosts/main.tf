# Machines that are there already, in a table. After terraform apply, name this folder in an inventory source.

terraform {
  required_version = ">= 1.9"
}

module "cluster" {
  source = "../../modules/onprem"

  cluster_size  = 16
  instance_type = "onprem-gaudi3-8"
  hosts_file    = "${path.module}/hosts.csv"
}

# What the inventory plugin gaudi3.scale.terraform reads.
output "cluster" {
  description = "What the cluster is, and how ssh gets there."
  value       = module.cluster.cluster
}

output "cluster_endpoints" {
  description = "Every host by name."
  value       = module.cluster.cluster_endpoints
}
