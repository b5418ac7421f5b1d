"""What the fields of a config.json mean for the cache: `fields` reads one of them, `patterns` the kind of every layer,
`layers` what each keeps, `families` what only a model's class knows, and `unread` guards the rest."""
