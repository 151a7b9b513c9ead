resource "aws_budgets_budget" "cluster" {
  count = var.monthly_budget_usd == null ? 0 : 1

  name_prefix  = "gaudi3-${var.name}-"
  budget_type  = "COST"
  limit_amount = tostring(var.monthly_budget_usd)
  limit_unit   = "USD"
  time_unit    = "MONTHLY"
  tags         = local.tags

  cost_filter {
    # user:KEY$VALUE. Two dollar signs before a brace would be an escape, and var.name would stand there as it is.
    name   = "TagKeyValue"
    values = ["user:Cluster${"$"}${var.name}"]
  }

  dynamic "notification" {
    for_each = [80, 100]

    content {
      comparison_operator        = "GREATER_THAN"
      threshold                  = notification.value
      threshold_type             = "PERCENTAGE"
      notification_type          = "ACTUAL"
      subscriber_email_addresses = var.budget_emails
    }
  }
}
