# Machines have private addresses only. With internet they reach out through NAT; S3 is always reached inside.

resource "aws_vpc" "cluster" {
  count = local.own_network ? 1 : 0

  cidr_block           = module.cluster.network_cidr
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = merge(local.tags, { Name = var.name })
}

# Nothing uses the group that every VPC comes with: it admits nothing.
resource "aws_default_security_group" "closed" {
  count = local.own_network ? 1 : 0

  vpc_id = aws_vpc.cluster[0].id
  tags   = merge(local.tags, { Name = "${var.name}-closed" })
}

resource "aws_subnet" "nodes" {
  count = local.own_network ? 1 : 0

  vpc_id            = aws_vpc.cluster[0].id
  cidr_block        = module.cluster.node_subnet_cidr
  availability_zone = var.availability_zone == "" ? terraform_data.zone.output : var.availability_zone
  tags              = merge(local.tags, { Name = "${var.name}-nodes" })
}

resource "aws_route_table" "nodes" {
  count = local.own_network ? 1 : 0

  vpc_id = aws_vpc.cluster[0].id
  tags   = merge(local.tags, { Name = "${var.name}-nodes" })
}

resource "aws_route_table_association" "nodes" {
  count = local.own_network ? 1 : 0

  subnet_id      = aws_subnet.nodes[0].id
  route_table_id = aws_route_table.nodes[0].id
}

resource "aws_subnet" "gateway" {
  count = local.gateway ? 1 : 0

  vpc_id                  = aws_vpc.cluster[0].id
  cidr_block              = module.cluster.public_subnet_cidr
  availability_zone       = aws_subnet.nodes[0].availability_zone
  map_public_ip_on_launch = false
  tags                    = merge(local.tags, { Name = "${var.name}-gateway" })
}

resource "aws_internet_gateway" "cluster" {
  count = local.gateway ? 1 : 0

  vpc_id = aws_vpc.cluster[0].id
  tags   = merge(local.tags, { Name = var.name })
}

resource "aws_route_table" "gateway" {
  count = local.gateway ? 1 : 0

  vpc_id = aws_vpc.cluster[0].id
  tags   = merge(local.tags, { Name = "${var.name}-gateway" })
}

resource "aws_route" "gateway" {
  count = local.gateway ? 1 : 0

  route_table_id         = aws_route_table.gateway[0].id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.cluster[0].id
}

resource "aws_route_table_association" "gateway" {
  count = local.gateway ? 1 : 0

  subnet_id      = aws_subnet.gateway[0].id
  route_table_id = aws_route_table.gateway[0].id
}

resource "aws_eip" "nat" {
  count = local.gateway ? 1 : 0

  domain = "vpc"
  tags   = merge(local.tags, { Name = "${var.name}-nat" })
}

resource "aws_nat_gateway" "cluster" {
  count = local.gateway ? 1 : 0

  allocation_id = aws_eip.nat[0].id
  subnet_id     = aws_subnet.gateway[0].id
  tags          = merge(local.tags, { Name = var.name })

  depends_on = [aws_internet_gateway.cluster]
}

resource "aws_route" "nodes" {
  count = local.gateway ? 1 : 0

  route_table_id         = aws_route_table.nodes[0].id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.cluster[0].id
}

resource "aws_vpc_endpoint" "s3" {
  count = local.own_network ? 1 : 0

  vpc_id            = aws_vpc.cluster[0].id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [aws_route_table.nodes[0].id]
  tags              = merge(local.tags, { Name = "${var.name}-s3" })

  # Packages and data may be read from any bucket, and written to the cluster's own only.
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "Read"
        Effect    = "Allow"
        Principal = "*"
        Action    = ["s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket", "s3:GetBucketLocation"]
        Resource  = "*"
      },
      {
        Sid       = "Checkpoints"
        Effect    = "Allow"
        Principal = "*"
        Action    = "s3:*"
        Resource  = [local.bucket_arn, "${local.bucket_arn}/*"]
      },
    ]
  })
}

resource "aws_vpc_endpoint" "interface" {
  for_each = var.internet || !local.own_network ? toset([]) : toset(["ssm", "ssmmessages", "ec2messages", "kms"])

  vpc_id              = aws_vpc.cluster[0].id
  service_name        = "com.amazonaws.${var.region}.${each.key}"
  vpc_endpoint_type   = "Interface"
  private_dns_enabled = true
  subnet_ids          = [aws_subnet.nodes[0].id]
  security_group_ids  = [aws_security_group.nodes.id]
  tags                = merge(local.tags, { Name = "${var.name}-${each.key}" })
}

resource "aws_flow_log" "cluster" {
  vpc_id          = local.own_network ? aws_vpc.cluster[0].id : null
  subnet_id       = local.own_network ? null : var.subnet_id
  traffic_type    = "ALL"
  log_destination = aws_cloudwatch_log_group.flow.arn
  iam_role_arn    = aws_iam_role.flow.arn
  tags            = merge(local.tags, { Name = var.name })
}

resource "aws_cloudwatch_log_group" "flow" {
  name_prefix       = "/gaudi3/${var.name}/flow-"
  retention_in_days = 365
  kms_key_id        = local.key_arn
  tags              = local.tags
}

resource "aws_iam_role" "flow" {
  name_prefix = "${var.name}-flow-"
  tags        = local.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "vpc-flow-logs.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "flow" {
  name_prefix = "write-"
  role        = aws_iam_role.flow.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"]
      Resource = "${aws_cloudwatch_log_group.flow.arn}:*"
    }]
  })
}
