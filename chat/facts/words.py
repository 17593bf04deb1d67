"""Words that make a number a date, a price or a measure, in the languages of the widget's most frequent visitors.

All are folded to small letters. What a language shares with another in another meaning (the Italian "set", the
Portuguese "out") is left out: a date that is not read as one is still a number.
"""


def _all(value, words: str) -> dict:
    return dict.fromkeys(words.split(), value)


def _numbered(words: str, start: int = 1, step: int = 1) -> dict[str, int]:
    return {word: step * number for number, word in enumerate(words.split(), start=start)}


MONTH_NAMES = (
    "january february march april may june july august september october november december",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "jänner feber märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "januar februar marts april maj juni juli august september oktober november december",
    "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
)
SHORT_MONTHS = (
    "jan feb mar apr may jun jul aug sep oct nov dec",
    "jan feb mär apr mai jun jul aug sept okt nov dez",
    "janv févr mars avr mai juin juil août sept oct nov déc",
    "ene feb mar abr may jun jul ago sept oct nov dic",
    "gen feb mar apr mag giu lug aug sett ott nov dic",
)
MONTHS = {name: number for names in (*SHORT_MONTHS, *MONTH_NAMES) for name, number in _numbered(names).items()}

ENGLISH_TENS = _numbered("twenty thirty forty fifty sixty seventy eighty ninety", 2, 10)
_GERMAN_TENS = _numbered("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig", 2, 10)
_GERMAN_UNITS = _numbered("ein zwei drei vier fünf sechs sieben acht neun")
_COUNTS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen",
    "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn",
    "un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize",
    "uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
    "uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici",
    "een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien",
    "um dois três quatro cinco seis sete oito nove dez onze doze treze quatorze quinze",
)
NUMBER_WORDS = {
    **{word: number for words in _COUNTS for word, number in _numbered(words).items()},
    **{f"{unit}und{ten}": tens + units for ten, tens in _GERMAN_TENS.items() for unit, units in _GERMAN_UNITS.items()},
    **_GERMAN_TENS,
    **ENGLISH_TENS,
    **_numbered("vingt trente quarante cinquante soixante", 2, 10),
    **_numbered("veinte treinta cuarenta cincuenta sesenta", 2, 10),
    **_numbered("venti trenta quaranta cinquanta sessanta", 2, 10),
    **_numbered("twintig dertig veertig vijftig zestig", 2, 10),
    **_all(100, "hundred hundert einhundert cien cento honderd"),
}
ARTICLES = frozenset(_all(1, "a an ein eine einen einem einer un une una um uma een"))  # ones, before a measure

SCALES = {
    **_all(10**3, "thousand tausend mille mil duizend tysięcy tsd k"),
    **_all(10**6, "million millions millionen mio mln millón millones milione milioni miljoen milhão milhões"),
    **_all(10**9, "billion billions milliarde milliarden mrd milliard milliards miliardo miljard bn"),
}

CURRENCY_SIGNS = {"€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY", "₹": "INR", "₺": "TRY", "₽": "RUB", "₩": "KRW"}
CURRENCIES = {
    **{code.lower(): code for code in _all("", "EUR USD GBP CHF JPY CNY INR TRY RUB KRW PLN CZK HUF CAD AUD BRL")},
    **_all("EUR", "euro euros eur€"),
    **_all("USD", "dollar dollars dólares dollari us$ dólar"),
    **_all("GBP", "pound pounds pfund livres libras sterline"),
    **_all("CHF", "franken francs fr sfr"),
    **_all("KR", "kr kronor kroner kronen sek nok dkk"),
    **_all("PLN", "zł zloty złotych"),
    **_all("JPY", "yen 円"),
    **_all("INR", "rupees rupien"),
    **_all("CNY", "元 yuan"),
    **CURRENCY_SIGNS,
}
PERCENT = frozenset(_all("", "% percent percents prozent procent percentage pct"))
PERCENT_AFTER = frozenset({"cent", "ciento", "cento"})  # of "per cent", "pour cent", "por ciento"
UNITS = {
    **_all("minute", "minute minutes min mins minuten minuto minutos minuti minuut"),
    **_all("hour", "hour hours h hr hrs stunde stunden std heure heures hora horas ora ore uur"),
    **_all("day", "day days tag tage tagen tägig tägige tägiges jour jours día días dia dias giorno giorni dag dagen"),
    **_all("week", "week weeks woche wochen wöchig semaine semaines semana semanas settimana settimane weken"),
    **_all("month", "month months monat monate monaten monatig mois mes meses mês mese mesi maand maanden"),
    **_all("year", "year years jahr jahre jahren jährig jährige an ans année années año años ano anos anno anni jaar"),
    **_all("second", "second seconds sekunde sekunden sec secs seconde secondes segundos secondi"),
    **_all("kg", "kg kilo kilos kilogramm kilograms kilogrammes"),
    **_all("km", "km kilometre kilometres kilometer kilometers kilomètres kilómetros chilometri"),
    **_all("cm", "cm zentimeter centimetres centimeters"),
    **{unit: unit for unit in _all("", "mm gb mb kb tb gib mib wh kwh kw ml")},
}
