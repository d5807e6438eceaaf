const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')

const MONTH = String.raw`(?<month>${MONTHS.join('|')})[a-z]*\.?`
/** Without a day, only a whole month: `juniper 1985` is a name and a year. */
const WHOLE_MONTH = String.raw`(?<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?`
const YEAR = String.raw`(?<year>(?:18|19|20)\d\d)`
const ANY_YEAR = String.raw`(?<year>(?:18|19|20)?\d\d)`
const BETWEEN = String.raw`\s*[\s./-]\s*`

/** The usual notations. A month in letters comes before or after its day. */
const NOTATIONS: readonly RegExp[] = [
  String.raw`${YEAR}${BETWEEN}(?<month>\d\d?)${BETWEEN}(?<day>\d\d?)`,
  String.raw`${YEAR}(?<month>\d\d)(?<day>\d\d)`,
  String.raw`(?<first>\d\d?)${BETWEEN}(?<second>\d\d?)${BETWEEN}${YEAR}`,
  String.raw`(?<first>\d\d?)(?<between>[./-])(?<second>\d\d?)\k<between>${ANY_YEAR}`,
  String.raw`(?<first>\d\d)(?<second>\d\d)${YEAR}`,
  String.raw`(?<day>\d\d?)(?:st|nd|rd|th)?[\s./-]*${MONTH}[\s,./-]*${ANY_YEAR}`,
  String.raw`${MONTH}\s*(?<day>\d\d?)(?:st|nd|rd|th)?[\s,]+${YEAR}`,
  String.raw`${WHOLE_MONTH}[\s,-]*${YEAR}`,
  String.raw`${YEAR}-(?<month>\d\d)`,
  YEAR,
].map(compile)

const ONLY_YEAR = compile(YEAR)

function compile(notation: string): RegExp {
  return new RegExp(String.raw`(?<![\p{L}\p{N}-])${notation}(?![\p{L}\p{N}-])`, 'iu')
}

/** A birth date in a text, and the rest of the text. */
interface BirthDate {
  /** FHIR dates: several if day and month can be read in both orders, or if the century is open. */
  readonly dates: readonly string[]
  /** Whether they have a day, and not only a year or a month. */
  readonly isDay: boolean
  readonly rest: string
}

/** Finds a birth date in one of the usual notations: `14-Mar-1958`, `14.3.58`, `3/14/1958`, `14031958`, `1958-03-14`, `Mar 1958`. */
export function findBirthDate(text: string): BirthDate | undefined {
  for (const notation of NOTATIONS) {
    const birth = readBirthDate(notation, text)
    if (birth) return birth
  }
  return undefined
}

/** The other reading of a month that is a name too, such as `April 1990`: a name and a year. */
export function findNameAndYear(text: string): BirthDate | undefined {
  return findBirthDate(text)?.isDay === false ? readBirthDate(ONLY_YEAR, text) : undefined
}

function readBirthDate(notation: RegExp, text: string): BirthDate | undefined {
  const match = notation.exec(text)
  const dates = match?.groups ? readDates(match.groups) : []
  const [date] = dates
  return match && date !== undefined
    ? { dates, isDay: date.length === 'YYYY-MM-DD'.length, rest: text.replace(match[0], ' ').trim() }
    : undefined
}

/** A day that no calendar has, such as `31/02/1990`. Digits alone may be an MRN. */
export function findImpossibleDate(text: string): string | undefined {
  if (findBirthDate(text)?.isDay) return undefined
  for (const notation of NOTATIONS) {
    const match = notation.exec(text)
    const hasDay = (match?.groups?.day ?? match?.groups?.second) !== undefined
    if (match && hasDay && /\D/.test(match[0])) return match[0]
  }
  return undefined
}

function readDates({ year = '', month, day, first, second }: Record<string, string | undefined>) {
  const orders =
    first === undefined
      ? [[month, day]]
      : [
          [second, first],
          [first, second],
        ]
  const years = year.length === 2 ? [`19${year}`, `20${year}`] : [year]
  const dates = orders.flatMap(([month, day]) => years.map(it => formatDate(it, month, day)))
  return [...new Set(dates.filter(date => date !== undefined))]
}

function formatDate(year: string, month: string | undefined, day: string | undefined): string | undefined {
  if (month === undefined) return year
  const number = MONTHS.indexOf(month.slice(0, 3).toLowerCase()) + 1 || Number(month)
  const parts = [year, pad(number), ...(day === undefined ? [] : [pad(Number(day))])]
  const date = new Date(Date.UTC(Number(year), number - 1, Number(day ?? 1)))
  return date.toISOString().startsWith(parts.join('-')) ? parts.join('-') : undefined
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}
