variable "region" {
  description = "Region of AWS; the provider that is passed to this module must have the same one."
  type        = string
  default     = "us-west-2"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region is '${var.region}', which is no region of AWS: give one such as us-west-2."
  }
}

variable "availability_zone" {
  description = "Zone of the nodes; empty for the first of the region's zones that offers the type. All nodes are in one: they talk to each other."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.availability_zone == "" || startswith(var.availability_zone, var.region)
    error_message = "availability_zone is '${var.availability_zone}', which is not in region ${var.region}: give one such as ${var.region}a, or leave it empty."
  }
}

variable "capacity" {
  description = "How the nodes are bought: on-demand, spot, reservation (an On-Demand Capacity Reservation) or capacity-block."
  type        = string
  default     = "on-demand"
  nullable    = false

  validation {
    condition     = contains(["on-demand", "spot", "reservation", "capacity-block"], var.capacity)
    error_message = "capacity is '${var.capacity}': give on-demand, spot, reservation or capacity-block."
  }
}

variable "capacity_reservation_id" {
  description = "The reservation or the capacity block to launch into, as cr-...; for capacity = reservation and capacity-block."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = contains(["reservation", "capacity-block"], var.capacity) ? can(regex("^cr-[0-9a-f]+$", var.capacity_reservation_id)) : var.capacity_reservation_id == ""
    error_message = "capacity_reservation_id is '${var.capacity_reservation_id}' with capacity = ${var.capacity}: give the id (cr-...) with reservation and capacity-block, and with them only."
  }
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

  validation {
    condition     = var.placement_group_name == "" || can(regex("^[ -~]{1,255}$", var.placement_group_name))
    error_message = "placement_group_name is '${var.placement_group_name}', which is no name of a placement group: give its name, or leave it empty."
  }
}

variable "on_demand_nodes" {
  description = "With capacity = spot: how many nodes, from the first on, are still bought on demand. Keep the first one, where training processes meet."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.on_demand_nodes >= 0 && floor(var.on_demand_nodes) == var.on_demand_nodes && (var.on_demand_nodes == 0 || var.capacity == "spot")
    error_message = "on_demand_nodes is ${var.on_demand_nodes} with capacity = ${var.capacity}: give a whole number from 0 on, and other than 0 with spot only."
  }
}

variable "spot_max_price" {
  description = "The most to pay for a node per hour, in USD, with capacity = spot; null for the price on demand."
  type        = number
  default     = null

  validation {
    condition     = var.spot_max_price == null || (coalesce(var.spot_max_price, 0) > 0 && var.capacity == "spot")
    error_message = "spot_max_price is ${coalesce(var.spot_max_price, 0)} with capacity = ${var.capacity}: give a price above 0 with spot, and leave it out otherwise."
  }
}

variable "autoscaling" {
  description = "Whether the nodes are kept by an autoscaling group, which replaces what is lost, instead of one by one by Terraform. Nodes are then called after their instance ids."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.autoscaling || (var.ttl == "" && var.idle_shutdown == "")
    error_message = "autoscaling is true with ttl or idle_shutdown, but the group replaces each node that powers itself off: leave one of them out."
  }
}

variable "efa" {
  description = "Elastic Fabric Adapter: one interface for each network card that has it. null switches it on where the type has it."
  type        = bool
  default     = null

  validation {
    condition     = !coalesce(var.efa, false) || try(module.cluster.type.efa_interfaces, 0) > 0
    error_message = "efa is true, but a ${var.instance_type} has no EFA interface: leave efa out, or take a type that has it (docs/clouds/instances.md)."
  }
}

variable "image_id" {
  description = "AMI of the nodes; empty for the newest one of image_parameter at the time a node is made. A newer one never replaces a running node; in an autoscaling group, nodes to come have it."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.image_id == "" || can(regex("^ami-[0-9a-f]{8,17}$", var.image_id))
    error_message = "image_id is '${var.image_id}', which is no AMI: give one as ami-0123456789abcdef0, or leave it empty."
  }
}

variable "image_parameter" {
  description = "Public SSM parameter that holds the image's id; by default Canonical's of Ubuntu 22.04."
  type        = string
  default     = "/aws/service/canonical/ubuntu/server/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id"
  nullable    = false

  validation {
    condition     = startswith(var.image_parameter, "/aws/service/")
    error_message = "image_parameter is '${var.image_parameter}', but must be one of the public parameters under /aws/service/: use image_id for an image of your own."
  }
}

variable "existing_key_name" {
  description = "Key pair of the region that may log in to the nodes, in place of one made from ssh_public_key; empty for that."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.existing_key_name == "" || (can(regex("^[ -~]{1,255}$", var.existing_key_name)) && var.ssh_public_key == "")
    error_message = "existing_key_name is '${var.existing_key_name}'${var.ssh_public_key == "" ? ", which is no name of a key pair: give its name, or leave it empty" : ", but ssh_public_key is given too: leave one of them out"}."
  }
}

variable "subnet_id" {
  description = "A subnet of yours to put all machines in, with its VPC; empty for a new VPC. Whether it reaches the internet, S3 and Systems Manager is yours to decide."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(subnet-[0-9a-f]{8,17})?$", var.subnet_id))
    error_message = "subnet_id is '${var.subnet_id}', which is no subnet: give one as subnet-0123456789abcdef0, or leave it empty."
  }

  validation {
    condition     = var.subnet_id == "" || var.availability_zone == ""
    error_message = "subnet_id is given with availability_zone, but a subnet is in one zone: leave availability_zone out."
  }

  validation {
    condition     = var.teardown || var.subnet_id == "" || var.public_entry == "none"
    error_message = "subnet_id is given with public_entry = ${var.public_entry}, but a public address needs the gateway of a network that is made here: leave public_entry out, and give jump_host."
  }
}

variable "existing_bucket" {
  description = "A bucket of yours for checkpoints, in the same region; empty for a new one. It is neither changed nor guarded nor destroyed here. Give the key that it is encrypted with as kms_key_arn."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$", var.existing_bucket))
    error_message = "existing_bucket is '${var.existing_bucket}', which is no name of a bucket: give its name alone, or leave it empty."
  }
}

variable "kms_key_arn" {
  description = "A key of yours for checkpoints and the flow log; empty for a new one. Its policy must let the region's log service use it."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(arn:aws[a-z-]*:kms:.*:key/.+)?$", var.kms_key_arn))
    error_message = "kms_key_arn is '${var.kms_key_arn}', which is no key: give its ARN (arn:aws:kms:...:key/...), or leave it empty."
  }
}

variable "node_role_name" {
  description = "A role of yours for the nodes; empty for a new one. It needs what terraform/modules/aws/iam.tf gives, and gets no policy here."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9+=,.@_-]{0,64}$", var.node_role_name))
    error_message = "node_role_name is '${var.node_role_name}', which is no name of a role: give its name alone, without path or ARN, or leave it empty."
  }
}

variable "metadata_hop_limit" {
  description = "How many hops an answer of the metadata service may take: 1 keeps it from containers with a network of their own, which then get neither credentials nor spot notices; 2 lets them have both."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = contains(range(1, 65), var.metadata_hop_limit)
    error_message = "metadata_hop_limit is ${var.metadata_hop_limit}: give 1 to 64."
  }
}

variable "ssh_user" {
  description = "User that the image lets in with the key."
  type        = string
  default     = "ubuntu"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]{0,31}$", var.ssh_user))
    error_message = "ssh_user is '${var.ssh_user}', which is no user name on Linux: give the user of the image, such as ubuntu."
  }
}

variable "connection" {
  description = "How ssh reaches the nodes, none of which has a public address: direct (from inside, or over a VPN), or ssm (through AWS Systems Manager, with the session-manager plugin of the AWS command line)."
  type        = string
  default     = "direct"
  nullable    = false

  validation {
    condition     = contains(["direct", "ssm"], var.connection)
    error_message = "connection is '${var.connection}': give direct or ssm."
  }

  validation {
    condition     = var.connection == "direct" || var.jump_host == ""
    error_message = "connection is ${var.connection} and jump_host is '${var.jump_host}', but one way in is enough: leave one of them out."
  }
}

variable "public_entry" {
  description = "Whether the monitoring machine gets a public address, to which allowed_cidrs may connect, and is the jump host of the nodes: monitor or none. To be set before the first apply; later it replaces the monitoring machine."
  type        = string
  default     = "none"
  nullable    = false

  validation {
    condition     = contains(["monitor", "none"], var.public_entry)
    error_message = "public_entry is '${var.public_entry}': give monitor or none."
  }

  validation {
    condition     = var.teardown || var.public_entry != "monitor" || (var.dedicated_monitor && var.internet && var.connection == "direct" && var.jump_host == "" && length(var.allowed_cidrs) > 0)
    error_message = "public_entry is monitor, ${!var.dedicated_monitor ? "but there is no monitoring machine: set dedicated_monitor = true" : !var.internet ? "but internet is false: leave one of the two out" : var.connection != "direct" || var.jump_host != "" ? "but connection or jump_host is another way in: leave one of them out" : "but no network may reach it: set allowed_cidrs to your own address, such as 198.51.100.7/32"}."
  }
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

  validation {
    condition     = alltrue([for cidr in var.egress_cidrs : can(cidrnetmask(cidr))])
    error_message = "egress_cidrs has '${join("', '", [for cidr in var.egress_cidrs : cidr if !can(cidrnetmask(cidr))])}', which is not a network of IPv4: write each as 198.51.100.0/24."
  }
}

variable "monitor_instance_type" {
  description = "Type of the monitoring machine."
  type        = string
  default     = "m6i.large"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9-]+\\.[a-z0-9-]+$", var.monitor_instance_type))
    error_message = "monitor_instance_type is '${var.monitor_instance_type}', which is no type of AWS: give one such as m6i.large."
  }
}

variable "volume_kms_key_arn" {
  description = "Key that encrypts the volumes; null for the account's own EBS key. A key of yours must let the service roles of Auto Scaling and Spot use it."
  type        = string
  default     = null

  validation {
    condition     = var.volume_kms_key_arn == null || can(regex("^arn:aws[a-z-]*:kms:", var.volume_kms_key_arn))
    error_message = "volume_kms_key_arn is '${coalesce(var.volume_kms_key_arn, "?")}', which is no key: give its ARN (arn:aws:kms:...), or leave it out."
  }
}

variable "keep_checkpoints_days" {
  description = "After how many days a version of a checkpoint that was deleted or overwritten is gone for good."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = var.keep_checkpoints_days >= 1 && floor(var.keep_checkpoints_days) == var.keep_checkpoints_days
    error_message = "keep_checkpoints_days is ${var.keep_checkpoints_days}: give a whole number from 1 on."
  }
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

  validation {
    condition     = var.access_log_bucket == "" || can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.access_log_bucket))
    error_message = "access_log_bucket is '${var.access_log_bucket}', which is no name of a bucket: give its name alone, or leave it empty."
  }
}

variable "monthly_budget_usd" {
  description = "Budget of what carries the cluster's tag, in USD per month, announced by mail at 80 and at 100 per cent; null for none. The tag Cluster must be activated for cost allocation."
  type        = number
  default     = null

  validation {
    condition     = var.monthly_budget_usd == null || (coalesce(var.monthly_budget_usd, 0) > 0 && length(var.budget_emails) > 0)
    error_message = "monthly_budget_usd is ${coalesce(var.monthly_budget_usd, 0)} with ${length(var.budget_emails)} addresses in budget_emails: give an amount above 0 and at least one address."
  }
}

variable "budget_emails" {
  description = "Who gets mail about the budget."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for mail in var.budget_emails : can(regex("^[^@ ]+@[^@ ]+$", mail))])
    error_message = "budget_emails has something that is no address (${join(", ", var.budget_emails)}): give addresses such as team@example.com."
  }
}

variable "budget_stops_nodes" {
  description = "Whether the budget, once it is used up, also stops the machines: AWS shuts them down as their operating system would, so that jobs save. Billing data is hours late."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.budget_stops_nodes || (var.monthly_budget_usd != null && !var.autoscaling && var.capacity != "spot")
    error_message = "budget_stops_nodes is true ${var.monthly_budget_usd == null ? "without monthly_budget_usd" : var.autoscaling ? "with autoscaling, whose group would replace what was stopped" : "with capacity = spot, whose machines cannot be stopped"}: leave it out, or change that."
  }
}
