terraform {
  # 1.9: the first whose validations may look at other variables and locals.
  required_version = ">= 1.9"
}
