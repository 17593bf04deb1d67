"""Facts of texts: numbers, prices, dates, times, phones, e-mails and URLs, in forms that can be compared."""
