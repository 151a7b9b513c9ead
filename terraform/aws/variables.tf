# Written by terraform/generate.py from terraform/modules/aws, where each variable is checked.

variable "region" {
  description = "Region of AWS; the provider that is passed to this module must have the same one."
  type        = string
  default     = "us-west-2"
  nullable    = false
}

variable "availability_zone" {
  description = "Zone of the nodes; empty for the first of the region's zones that offers the type. All nodes are in one: they talk to each other."
  type        = string
  default     = ""
  nullable    = false
}

variable "capacity" {
  description = "How the nodes are bought: on-demand, spot, reservation (an On-Demand Capacity Reservation) or capacity-block."
  type        = string
  default     = "on-demand"
  nullable    = false
}

variable "capacity_reservation_id" {
  description = "The reservation or the capacity block to launch into, as cr-...; for capacity = reservation and capacity-block."
  type        = string
  default     = ""
  nullable    = false
}

variable "check_quota" {
  description = "Whether the plan compares the account's quota with what is asked for on demand, and warns; this needs the right servicequotas:GetServiceQuota."
  type        = bool
  default     = true
  nullable    = false
}

variable "placement_group_name" {
  description = "Placement group to launch into that is there already; empty for one of the cluster's own, or for none with capacity = reservation and capacity-block, whose machines have their place."
  type        = string
  default     = ""
  nullable    = false
}

variable "on_demand_nodes" {
  description = "With capacity = spot: how many nodes, from the first on, are still bought on demand. Keep the first one, where training processes meet."
  type        = number
  default     = 0
  nullable    = false
}

variable "spot_max_price" {
  description = "The most to pay for a node per hour, in USD, with capacity = spot; null for the price on demand."
  type        = number
  default     = null
}

variable "autoscaling" {
  description = "Whether the nodes are kept by an autoscaling group, which replaces what is lost, instead of one by one by Terraform. Nodes are then called after their instance ids."
  type        = bool
  default     = false
  nullable    = false
}

variable "efa" {
  description = "Elastic Fabric Adapter: one interface for each network card that has it. null switches it on where the type has it."
  type        = bool
  default     = null
}

variable "image_id" {
  description = "AMI of the nodes; empty for the newest one of image_parameter at the time a node is made. A newer one never replaces a running node; in an autoscaling group, nodes to come have it."
  type        = string
  default     = ""
  nullable    = false
}

variable "image_parameter" {
  description = "Public SSM parameter that holds the image's id; by default Canonical's of Ubuntu 22.04."
  type        = string
  default     = "/aws/service/canonical/ubuntu/server/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id"
  nullable    = false
}

variable "existing_key_name" {
  description = "Key pair of the region that may log in to the nodes, in place of one made from ssh_public_key; empty for that."
  type        = string
  default     = ""
  nullable    = false
}

variable "subnet_id" {
  description = "A subnet of yours to put all machines in, with its VPC; empty for a new VPC. Whether it reaches the internet, S3 and Systems Manager is yours to decide."
  type        = string
  default     = ""
  nullable    = false
}

variable "existing_bucket" {
  description = "A bucket of yours for checkpoints, in the same region; empty for a new one. It is neither changed nor guarded nor destroyed here. Give the key that it is encrypted with as kms_key_arn."
  type        = string
  default     = ""
  nullable    = false
}

variable "kms_key_arn" {
  description = "A key of yours for checkpoints and the flow log; empty for a new one. Its policy must let the region's log service use it."
  type        = string
  default     = ""
  nullable    = false
}

variable "node_role_name" {
  description = "A role of yours for the nodes; empty for a new one. It needs what terraform/modules/aws/iam.tf gives, and gets no policy here."
  type        = string
  default     = ""
  nullable    = false
}

variable "metadata_hop_limit" {
  description = "How many hops an answer of the metadata service may take: 1 keeps it from containers with a network of their own, which then get neither credentials nor spot notices; 2 lets them have both."
  type        = number
  default     = 1
  nullable    = false
}

variable "ssh_user" {
  description = "User that the image lets in with the key."
  type        = string
  default     = "ubuntu"
  nullable    = false
}

variable "connection" {
  description = "How ssh reaches the nodes, none of which has a public address: direct (from inside, or over a VPN), or ssm (through AWS Systems Manager, with the session-manager plugin of the AWS command line)."
  type        = string
  default     = "direct"
  nullable    = false
}

variable "public_entry" {
  description = "Whether the monitoring machine gets a public address, to which allowed_cidrs may connect, and is the jump host of the nodes: monitor or none. To be set before the first apply; later it replaces the monitoring machine."
  type        = string
  default     = "none"
  nullable    = false
}

variable "internet" {
  description = "Whether the nodes reach the internet through a NAT gateway. Without it they reach S3 and Systems Manager through endpoints, and packages must come from mirrors inside."
  type        = bool
  default     = true
  nullable    = false
}

variable "egress_cidrs" {
  description = "Networks that the machines may reach on the ports 80 and 443 through the NAT gateway; S3 is reached without it."
  type        = list(string)
  default     = ["0.0.0.0/0"]
  nullable    = false
}

variable "monitor_instance_type" {
  description = "Type of the monitoring machine."
  type        = string
  default     = "m6i.large"
  nullable    = false
}

variable "volume_kms_key_arn" {
  description = "Key that encrypts the volumes; null for the account's own EBS key. A key of yours must let the service roles of Auto Scaling and Spot use it."
  type        = string
  default     = null
}

variable "keep_checkpoints_days" {
  description = "After how many days a version of a checkpoint that was deleted or overwritten is gone for good."
  type        = number
  default     = 30
  nullable    = false
}

variable "destroy_checkpoints" {
  description = "Whether terraform destroy deletes the bucket with checkpoints in it; without it, it stops there, and the key stays."
  type        = bool
  default     = false
  nullable    = false
}

variable "access_log_bucket" {
  description = "Bucket that gets the access log of the checkpoint bucket; empty for none."
  type        = string
  default     = ""
  nullable    = false
}

variable "monthly_budget_usd" {
  description = "Budget of what carries the cluster's tag, in USD per month, announced by mail at 80 and at 100 per cent; null for none. The tag Cluster must be activated for cost allocation."
  type        = number
  default     = null
}

variable "budget_emails" {
  description = "Who gets mail about the budget."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "budget_stops_nodes" {
  description = "Whether the budget, once it is used up, also stops the machines: AWS shuts them down as their operating system would, so that jobs save. Billing data is hours late."
  type        = bool
  default     = false
  nullable    = false
}
