"""What a capture says: tables, inventories and verdicts made from decoded frames."""
