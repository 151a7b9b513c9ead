# Plans with a mocked provider: no account, no network. What is made is asserted where AWS would read it.

mock_provider "aws" {
  mock_data "aws_ec2_instance_type_offerings" {
    defaults = { locations = ["us-west-2c", "us-west-2a"] }
  }

  mock_data "aws_ssm_parameter" {
    defaults = { insecure_value = "ami-0123456789abcdef0" }
  }

  mock_data "aws_ami" {
    defaults = { root_device_name = "/dev/xvda" }
  }

  mock_data "aws_servicequotas_service_quota" {
    defaults = { value = 768 }
  }

  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }

  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }

  # Of a machine on demand AWS says nothing here.
  mock_resource "aws_instance" {
    defaults = { instance_lifecycle = "" }
  }

  mock_data "aws_instances" {
    defaults = { ids = ["i-0000000000000000b", "i-0000000000000000a"], private_ips = ["10.42.16.9", "10.42.16.8"] }
  }

  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:us-west-2:123456789012:key/00000000-0000-0000-0000-000000000000" }
  }

  mock_resource "aws_s3_bucket" {
    defaults = { id = "gaudi-checkpoints-1", arn = "arn:aws:s3:::gaudi-checkpoints-1" }
  }

  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/role", name = "role" }
  }

  mock_resource "aws_iam_instance_profile" {
    defaults = { arn = "arn:aws:iam::123456789012:instance-profile/profile", name = "profile" }
  }

  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:us-west-2:123456789012:log-group:/gaudi3/gaudi/flow-1" }
  }

  mock_resource "aws_launch_template" {
    defaults = { id = "lt-0123456789abcdef0", latest_version = 1 }
  }

  mock_resource "aws_placement_group" {
    defaults = { id = "gaudi" }
  }
}

variables {
  cluster_size   = 16
  instance_type  = "dl1.24xlarge"
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0h3yqQWfS9NSQfzBf8Ue0qS2hP4b8nA4V1Zb2c3d4e me@example"
  jump_host      = "me@gate.example.com"

  accept_withdrawn_type = true
}

# The types of Gaudi 1 are warned about, which a test run would take for a failure.
run "nodes_and_their_network" {
  command         = apply
  expect_failures = [check.generation]

  assert {
    condition     = sort(keys(aws_instance.node)) == tolist(["gaudi-01", "gaudi-02"]) && length(aws_instance.monitor) == 1
    error_message = "16 cards of dl1.24xlarge are two nodes and a monitor."
  }

  assert {
    condition = [for each in aws_launch_template.node["on-demand"].network_interfaces : [each.network_card_index, each.device_index, each.interface_type]] == [
      [0, 0, "efa"], [1, 1, "efa-only"], [2, 1, "efa-only"], [3, 1, "efa-only"],
    ]
    error_message = "One EFA interface on each of the four cards is wanted, and the first alone takes an address."
  }

  assert {
    condition     = aws_launch_template.node["on-demand"].block_device_mappings[0].device_name == "/dev/xvda"
    error_message = "The root volume is not mapped under the image's own name of it, so that there are two volumes."
  }

  assert {
    condition     = aws_launch_template.node["on-demand"].metadata_options[0].http_put_response_hop_limit == 1 && aws_launch_template.node["on-demand"].instance_initiated_shutdown_behavior == null
    error_message = "Metadata goes no further than the host by default, and a machine that is shut down stays."
  }

  # Who needs no session has no right to Systems Manager, and nobody reads the account's parameters.
  assert {
    condition     = length(aws_iam_role_policy.session) == 0
    error_message = "Machines that are reached by ssh are registered with Systems Manager."
  }

  assert {
    condition     = [for each in jsondecode(aws_vpc_endpoint.s3[0].policy).Statement : each.Resource if contains(flatten([each.Action]), "s3:*")] == [["arn:aws:s3:::gaudi-checkpoints-1", "arn:aws:s3:::gaudi-checkpoints-1/*"]] && !strcontains(jsonencode([for each in jsondecode(aws_vpc_endpoint.s3[0].policy).Statement : each.Action if each.Resource == "*"]), "Put")
    error_message = "The endpoint lets something be written to another bucket than the cluster's."
  }

  assert {
    condition     = alltrue([for each in aws_launch_template.node["on-demand"].network_interfaces : each.associate_public_ip_address == null])
    error_message = "AWS refuses a word on public addresses with several interfaces."
  }

  assert {
    condition     = aws_launch_template.node["on-demand"].metadata_options[0].http_tokens == "required" && aws_instance.monitor[0].metadata_options[0].http_tokens == "required"
    error_message = "IMDSv2 only."
  }

  assert {
    condition     = aws_launch_template.node["on-demand"].block_device_mappings[0].ebs[0].encrypted == "true" && aws_instance.monitor[0].root_block_device[0].encrypted
    error_message = "Volumes are encrypted."
  }

  assert {
    condition     = aws_placement_group.cluster.strategy == "cluster" && aws_launch_template.node["on-demand"].placement[0].group_name == "gaudi"
    error_message = "Nodes are placed close to each other."
  }

  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.admitted) == 0
    error_message = "Nothing is admitted that allowed_cidrs does not name."
  }

  assert {
    condition     = aws_vpc_security_group_ingress_rule.self.referenced_security_group_id == aws_security_group.nodes.id && aws_vpc_security_group_egress_rule.self.referenced_security_group_id == aws_security_group.nodes.id
    error_message = "EFA needs the rule to and from the group itself."
  }

  assert {
    condition     = aws_instance.monitor[0].vpc_security_group_ids == toset([aws_security_group.monitor[0].id]) && aws_vpc_security_group_ingress_rule.from_monitor["all"].security_group_id == aws_security_group.nodes.id && aws_vpc_security_group_ingress_rule.from_monitor["all"].referenced_security_group_id == aws_security_group.monitor[0].id
    error_message = "The monitoring machine has a group of its own, which the nodes admit."
  }

  assert {
    condition     = aws_subnet.nodes[0].availability_zone == "us-west-2a"
    error_message = "The first zone that offers the type is taken."
  }

  assert {
    condition = [for each in jsondecode(aws_iam_role_policy.checkpoints[0].policy).Statement : each.Resource] == [
      "arn:aws:s3:::gaudi-checkpoints-1",
      "arn:aws:s3:::gaudi-checkpoints-1",
      "arn:aws:s3:::gaudi-checkpoints-1/gaudi/checkpoints/*",
      "arn:aws:kms:us-west-2:123456789012:key/00000000-0000-0000-0000-000000000000",
    ]
    error_message = "Nodes reach their own prefix of their own bucket, its key, and nothing else."
  }

  assert {
    condition = [for each in jsondecode(aws_iam_role_policy.checkpoints[0].policy).Statement : each.Action if can(each.Condition)] == [
      "s3:ListBucket",
    ]
    error_message = "IAM denies an action under a condition whose key it does not have; s3:prefix is one of ListBucket."
  }

  assert {
    condition     = output.cluster.checkpoint_target == "s3://gaudi-checkpoints-1/gaudi/checkpoints"
    error_message = "The outputs do not say where checkpoints go."
  }
}

# Another zone that is asked for moves the subnet; that AWS lists zones in another order does not.
run "another_order_of_zones" {
  command         = plan
  expect_failures = [check.generation]

  override_data {
    target = data.aws_ec2_instance_type_offerings.type
    values = { locations = ["us-west-2b", "us-west-2c"] }
  }

  assert {
    condition     = aws_subnet.nodes[0].availability_zone == "us-west-2a"
    error_message = "The zone that was chosen first stays."
  }
}

run "another_zone" {
  command         = plan
  expect_failures = [check.generation]

  variables {
    availability_zone = "us-west-2c"
  }

  assert {
    condition     = aws_subnet.nodes[0].availability_zone == "us-west-2c"
    error_message = "A zone that is given after the first apply is not taken, so that there is no way out of a zone without capacity."
  }
}

# A launch template that changes does not change the nodes that run: the plan says which, and the outputs what AWS says.
run "another_market_and_no_efa" {
  command         = plan
  expect_failures = [check.generation, check.running_nodes]

  variables {
    capacity = "spot"
    efa      = false
  }

  assert {
    condition     = local.other_nodes == { for name in ["gaudi-01", "gaudi-02"] : name => "capacity on-demand, not spot, efa true, not false" }
    error_message = "It is not said what the nodes have: ${jsonencode(local.other_nodes)}"
  }

  assert {
    condition     = [for name in ["gaudi-01", "gaudi-02"] : output.cluster_endpoints[name].market] == ["on-demand", "on-demand"]
    error_message = "The outputs say how the nodes are to be bought, and not how they were."
  }
}

run "another_type" {
  command         = plan
  expect_failures = [check.running_nodes]

  variables {
    instance_type             = "p4d.24xlarge"
    accept_other_accelerators = true
  }

  assert {
    condition     = local.other_nodes["gaudi-02"] == "instance_type dl1.24xlarge, not p4d.24xlarge"
    error_message = "It is not said what the nodes are: ${jsonencode(local.other_nodes)}"
  }
}

run "admitted_networks" {
  command         = plan
  expect_failures = [check.generation]

  variables {
    allowed_cidrs = ["198.51.100.0/24", "2001:db8::/48"]
  }

  assert {
    condition     = sort([for each in aws_vpc_security_group_ingress_rule.admitted : "${each.from_port} ${coalesce(each.cidr_ipv4, each.cidr_ipv6)}"]) == tolist(["22 198.51.100.0/24", "22 2001:db8::/48"])
    error_message = "SSH alone is open on the nodes, for each of the two networks."
  }

  assert {
    condition     = join(" ", sort([for each in aws_vpc_security_group_ingress_rule.admitted_to_monitor : tostring(each.from_port) if each.cidr_ipv6 == null])) == "22 3000 9090 9093 9109" && length(aws_vpc_security_group_ingress_rule.admitted_to_monitor) == 10
    error_message = "SSH and four pages are open on the monitoring machine, for each of the two networks."
  }
}

run "spot_behind_an_on_demand_head" {
  command         = plan
  expect_failures = [check.generation, check.running_nodes]

  variables {
    cluster_size    = 24
    capacity        = "spot"
    on_demand_nodes = 1
    spot_max_price  = 5.5
  }

  assert {
    condition     = aws_launch_template.node["spot"].instance_market_options[0].market_type == "spot" && aws_launch_template.node["spot"].instance_market_options[0].spot_options[0].max_price == "5.5"
    error_message = "The spot template does not say spot, or not for how much."
  }

  assert {
    condition     = length(aws_launch_template.node["on-demand"].instance_market_options) == 0
    error_message = "The template of the first node must not be spot."
  }
}

run "capacity_block" {
  command         = plan
  expect_failures = [check.generation, check.running_nodes]

  variables {
    capacity                = "capacity-block"
    capacity_reservation_id = "cr-0123456789abcdef0"
  }

  assert {
    condition     = aws_launch_template.node["capacity-block"].instance_market_options[0].market_type == "capacity-block" && aws_launch_template.node["capacity-block"].capacity_reservation_specification[0].capacity_reservation_target[0].capacity_reservation_id == "cr-0123456789abcdef0"
    error_message = "A capacity block needs the market and the reservation."
  }

  assert {
    condition     = length(aws_launch_template.node["capacity-block"].placement) == 0
    error_message = "What was reserved before the cluster's placement group was made is not in it."
  }

  assert {
    condition     = aws_launch_template.node["capacity-block"].instance_type == "dl1.24xlarge"
    error_message = "AWS wants the type in the template of a capacity block."
  }
}

run "capacity_reservation" {
  command         = plan
  expect_failures = [check.generation, check.running_nodes]

  variables {
    capacity                = "reservation"
    capacity_reservation_id = "cr-0123456789abcdef0"
    placement_group_name    = "theirs"
  }

  assert {
    condition     = length(aws_launch_template.node["reservation"].instance_market_options) == 0 && aws_launch_template.node["reservation"].capacity_reservation_specification[0].capacity_reservation_target[0].capacity_reservation_id == "cr-0123456789abcdef0"
    error_message = "A reservation is on demand, in the reservation."
  }

  assert {
    condition     = [for each in aws_launch_template.node["reservation"].placement : each.group_name] == ["theirs"]
    error_message = "The reservation's own placement group is not used."
  }
}

run "autoscaling_group" {
  command         = apply
  expect_failures = [check.generation]

  variables {
    autoscaling = true
    capacity    = "spot"
  }

  override_data {
    target = data.aws_instances.spot[0]
    values = { ids = ["i-0000000000000000a"] }
  }

  assert {
    condition     = length(aws_instance.node) == 0 && aws_autoscaling_group.nodes[0].desired_capacity == 2
    error_message = "The group has the nodes, Terraform none."
  }

  assert {
    condition     = aws_autoscaling_group.nodes[0].mixed_instances_policy[0].instances_distribution[0].on_demand_percentage_above_base_capacity == 0 && length(aws_launch_template.node["on-demand"].instance_market_options) == 0
    error_message = "The group mixes by itself, from a template that does not say."
  }

  assert {
    condition     = [for name in ["gaudi-0000000000000000a", "gaudi-0000000000000000b"] : output.cluster_endpoints[name].market] == ["spot", "on-demand"]
    error_message = "Which machines of the group are on the spot market is not what AWS says."
  }

  assert {
    condition     = output.master_ip == "10.42.16.8" && output.cluster.node_names == tolist(["gaudi-0000000000000000a", "gaudi-0000000000000000b"])
    error_message = "The group's machines are named after their ids, in their order."
  }
}

run "a_first_card_without_efa" {
  command = plan

  variables {
    instance_type             = "p6-b300.48xlarge"
    cluster_size              = 8
    accept_other_accelerators = true
  }

  assert {
    condition     = aws_launch_template.node["on-demand"].network_interfaces[0].interface_type == "interface" && length([for each in aws_launch_template.node["on-demand"].network_interfaces : each if each.interface_type == "efa-only"]) == 16
    error_message = "17 cards, 16 of them with EFA."
  }
}

run "without_efa" {
  command         = plan
  expect_failures = [check.generation]

  variables {
    efa                = false
    metadata_hop_limit = 2
    existing_key_name  = "ours"
    ssh_public_key     = ""
    egress_cidrs       = ["198.51.100.0/24"]
    ttl                = "12h"
  }

  assert {
    condition     = aws_launch_template.node["on-demand"].metadata_options[0].http_put_response_hop_limit == 2 && aws_instance.monitor[0].metadata_options[0].http_put_response_hop_limit == 2
    error_message = "Containers reach the metadata service over two hops."
  }

  assert {
    condition     = length(aws_key_pair.cluster) == 0 && aws_launch_template.node["on-demand"].key_name == "ours" && aws_instance.monitor[0].key_name == "ours"
    error_message = "A key pair that is there is used, and no other made."
  }

  assert {
    condition     = toset([for each in concat(values(aws_vpc_security_group_egress_rule.web), values(aws_vpc_security_group_egress_rule.monitor_web)) : "${each.from_port} ${each.cidr_ipv4}"]) == toset(["80 198.51.100.0/24", "443 198.51.100.0/24"])
    error_message = "The machines reach more than egress_cidrs."
  }

  assert {
    condition     = aws_launch_template.node["on-demand"].instance_initiated_shutdown_behavior == "terminate" && aws_instance.monitor[0].instance_initiated_shutdown_behavior == "terminate"
    error_message = "A machine that powers itself off at the end of its time has to cost nothing from then on."
  }

  assert {
    condition     = [for each in aws_launch_template.node["on-demand"].network_interfaces : [each.interface_type, each.associate_public_ip_address]] == [["interface", "false"]]
    error_message = "One plain interface without a public address is wanted."
  }
}

run "without_internet" {
  command         = plan
  expect_failures = [check.generation]

  variables {
    internet          = false
    dedicated_monitor = false
  }

  assert {
    condition     = length(aws_nat_gateway.cluster) == 0 && length(aws_vpc_security_group_egress_rule.web) == 0 && sort(keys(aws_vpc_endpoint.interface)) == tolist(["ec2messages", "kms", "ssm", "ssmmessages"])
    error_message = "Without internet there is no way out, and endpoints instead."
  }
}

run "through_the_monitoring_machine" {
  command         = apply
  expect_failures = [check.generation]

  override_resource {
    target = aws_eip.entry[0]
    values = { public_ip = "203.0.113.9" }
  }

  variables {
    public_entry  = "monitor"
    jump_host     = ""
    allowed_cidrs = ["198.51.100.7/32"]
  }

  assert {
    condition     = aws_instance.monitor[0].subnet_id == aws_subnet.gateway[0].id && aws_eip.entry[0].instance == aws_instance.monitor[0].id
    error_message = "Behind a NAT gateway no public address can be reached from outside."
  }

  assert {
    condition     = output.cluster.jump_host == "ubuntu@203.0.113.9" && output.cluster_endpoints["gaudi-01"].connect_to != "203.0.113.9" && output.cluster_endpoints["gaudi-monitor"].connect_to == "203.0.113.9"
    error_message = "The nodes are reached through the monitoring machine, which is known by its public address."
  }
}

run "an_entry_for_nobody" {
  command         = plan
  expect_failures = [var.public_entry, check.generation]

  variables {
    public_entry = "monitor"
    jump_host    = ""
  }
}

run "through_systems_manager" {
  command         = apply
  expect_failures = [check.generation]

  variables {
    connection = "ssm"
    jump_host  = ""
  }

  assert {
    condition     = output.cluster_endpoints["gaudi-01"].connect_to == output.cluster_endpoints["gaudi-01"].instance_id && output.cluster.connection == "ssm"
    error_message = "ssh must go to the instance id, through a session."
  }

  assert {
    condition     = sort(keys(aws_iam_role_policy.session)) == tolist(["monitor", "node"]) && alltrue([for each in aws_iam_role_policy.session : !can(regex("GetParameter|ssm:\\*|\"\\*\"\\]?,?\"Effect", each.policy))])
    error_message = "Sessions need no right to read the account's parameters."
  }

  assert {
    condition     = jsondecode(aws_iam_role_policy.session["node"].policy).Statement[0].Action == ["ssm:UpdateInstanceInformation", "ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel", "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel"]
    error_message = "More is allowed than sessions need."
  }
}

run "budget" {
  command         = plan
  expect_failures = [check.generation]

  variables {
    monthly_budget_usd = 5000
    budget_emails      = ["team@example.com"]
    budget_stops_nodes = true
  }

  assert {
    condition     = aws_budgets_budget_action.stop[0].action_threshold[0].action_threshold_value == 100 && aws_budgets_budget_action.stop[0].definition[0].ssm_action_definition[0].action_sub_type == "STOP_EC2_INSTANCES" && aws_budgets_budget_action.stop[0].approval_model == "AUTOMATIC"
    error_message = "The budget does not stop the machines once it is used up."
  }

  assert {
    condition     = join(" ", sort([for each in aws_budgets_budget.cluster[0].notification : tostring(each.threshold)])) == "100 80"
    error_message = "The budget is told at 80 and at 100 per cent."
  }

  # Cost Explorer's form of a tag is user:KEY$VALUE.
  assert {
    condition     = join(" ", one(aws_budgets_budget.cluster[0].cost_filter).values) == join("$", ["user:Cluster", "gaudi"])
    error_message = "The budget counts ${join(" ", one(aws_budgets_budget.cluster[0].cost_filter).values)}, and no cost carries that."
  }
}

run "a_budget_that_stops_what_cannot_be_stopped" {
  command         = plan
  expect_failures = [var.budget_stops_nodes, check.generation, check.running_nodes]

  variables {
    capacity           = "spot"
    monthly_budget_usd = 5000
    budget_emails      = ["team@example.com"]
    budget_stops_nodes = true
  }
}

run "a_group_of_nodes_that_end_themselves" {
  command         = plan
  expect_failures = [var.autoscaling, check.generation]

  variables {
    autoscaling = true
    ttl         = "12h"
  }
}

run "no_quota" {
  command         = plan
  expect_failures = [check.quota, check.generation]

  override_data {
    target = data.aws_servicequotas_service_quota.vcpus[0]
    values = { value = 0 }
  }
}

run "the_example" {
  command = apply

  module {
    source = "../../examples/aws"
  }

  assert {
    condition     = sort(keys(output.cluster_endpoints)) == sort(concat(output.cluster.node_names, compact([output.cluster.monitor])))
    error_message = "The example cannot be planned."
  }
}

run "efa_on_a_type_without_it" {
  command         = plan
  expect_failures = [var.efa]

  variables {
    instance_type             = "inf2.48xlarge"
    cluster_size              = 12
    accept_other_accelerators = true
    efa                       = true
  }
}

run "a_zone_without_the_type" {
  command         = plan
  expect_failures = [terraform_data.zone, check.generation]

  variables {
    availability_zone = "us-west-2b"
  }
}

run "a_zone_elsewhere" {
  command         = plan
  expect_failures = [var.availability_zone, check.generation]

  variables {
    availability_zone = "us-east-1a"
  }
}

run "a_block_without_its_id" {
  command         = plan
  expect_failures = [var.capacity_reservation_id, check.generation]

  variables {
    capacity = "capacity-block"
  }
}

run "on_demand_nodes_without_spot" {
  command         = plan
  expect_failures = [var.on_demand_nodes, check.generation]

  variables {
    on_demand_nodes = 1
  }
}

run "a_budget_that_nobody_hears_of" {
  command         = plan
  expect_failures = [var.monthly_budget_usd, check.generation]

  variables {
    monthly_budget_usd = 5000
  }
}

run "in_a_subnet_with_a_bucket_a_key_and_a_role_that_are_there" {
  command         = plan
  expect_failures = [check.generation]

  variables {
    subnet_id       = "subnet-0123456789abcdef0"
    existing_bucket = "team-checkpoints"
    kms_key_arn     = "arn:aws:kms:us-west-2:123456789012:key/team"
    node_role_name  = "team-nodes"
  }

  override_data {
    target = data.aws_subnet.existing[0]
    values = { vpc_id = "vpc-0123456789abcdef0", availability_zone = "us-west-2c" }
  }

  override_data {
    target = data.aws_prefix_list.s3[0]
    values = { id = "pl-0123456789abcdef0" }
  }

  assert {
    condition     = length(concat(aws_vpc.cluster, aws_default_security_group.closed, aws_subnet.nodes, aws_subnet.gateway, aws_nat_gateway.cluster, aws_internet_gateway.cluster, aws_route_table.nodes, aws_vpc_endpoint.s3)) + length(aws_vpc_endpoint.interface) == 0
    error_message = "A network is made beside the one that was given."
  }

  assert {
    condition     = aws_security_group.nodes.vpc_id == "vpc-0123456789abcdef0" && aws_launch_template.node["on-demand"].network_interfaces[0].subnet_id == "subnet-0123456789abcdef0" && aws_instance.monitor[0].subnet_id == "subnet-0123456789abcdef0" && aws_flow_log.cluster.subnet_id == "subnet-0123456789abcdef0"
    error_message = "The machines are not in the subnet that was given."
  }

  assert {
    condition     = aws_vpc_security_group_egress_rule.s3.prefix_list_id == "pl-0123456789abcdef0"
    error_message = "S3 is closed."
  }

  assert {
    condition     = length(concat(aws_s3_bucket.checkpoints, aws_s3_bucket_policy.checkpoints, aws_s3_bucket_lifecycle_configuration.checkpoints, aws_s3_bucket_versioning.checkpoints, aws_s3_bucket_public_access_block.checkpoints, aws_s3_bucket_server_side_encryption_configuration.checkpoints)) == 0 && output.cluster.checkpoint_target == "s3://team-checkpoints/gaudi/checkpoints"
    error_message = "The bucket that was given is changed, or not used."
  }

  assert {
    condition     = length(concat(aws_kms_key.cluster, aws_kms_alias.cluster)) == 0 && aws_cloudwatch_log_group.flow.kms_key_id == "arn:aws:kms:us-west-2:123456789012:key/team"
    error_message = "The key that was given is not used."
  }

  assert {
    condition     = length(aws_iam_role.node) + length(aws_iam_role_policy.checkpoints) == 0 && aws_iam_instance_profile.node.role == "team-nodes"
    error_message = "The role that was given is not used, or got a policy."
  }
}

run "a_bucket_that_is_there_with_a_role_of_the_cluster" {
  command         = plan
  expect_failures = [check.generation]

  variables {
    existing_bucket = "team-checkpoints"
    kms_key_arn     = "arn:aws:kms:us-west-2:123456789012:key/team"
  }

  assert {
    condition = [for each in jsondecode(aws_iam_role_policy.checkpoints[0].policy).Statement : each.Resource] == [
      "arn:aws:s3:::team-checkpoints",
      "arn:aws:s3:::team-checkpoints",
      "arn:aws:s3:::team-checkpoints/gaudi/checkpoints/*",
      "arn:aws:kms:us-west-2:123456789012:key/team",
    ]
    error_message = "The nodes reach another bucket or key than the ones that were given."
  }
}

run "a_subnet_in_a_zone_without_the_type" {
  command         = plan
  expect_failures = [data.aws_subnet.existing, check.generation]

  variables {
    subnet_id = "subnet-0123456789abcdef0"
  }

  override_data {
    target = data.aws_subnet.existing[0]
    values = { vpc_id = "vpc-0123456789abcdef0", availability_zone = "us-west-2b" }
  }
}

run "a_subnet_with_a_zone" {
  command         = plan
  expect_failures = [var.subnet_id, check.generation]

  variables {
    subnet_id         = "subnet-0123456789abcdef0"
    availability_zone = "us-west-2a"
  }
}
