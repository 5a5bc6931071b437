"""Analysis of captures: tables, inventories and verdicts made from decoded frames."""
