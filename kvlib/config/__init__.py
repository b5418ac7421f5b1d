"""What the fields of a config.json mean for the cache: `decoder` finds the text decoder, `fields` reads one of its fields,
`patterns` the kind of every layer, `layers` what each keeps, `families` what only a model's class knows; `unread` guards the rest."""
