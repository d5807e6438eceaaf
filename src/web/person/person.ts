import { computeDistance, isRecord, toPlainLine } from '../../core/index.ts'
import type { Resource } from '../../fhir/index.ts'
import { COMPARED_CHARACTERS } from './limits.ts'

/** The facts that identify a person on a page, read from a FHIR Patient (or Practitioner, for the name). */
export interface Person {
  readonly id: string
  readonly name: PersonName
  /** A FHIR date, or a dateTime if the time of birth is recorded. */
  readonly born?: string
  /** FHIR `gender` as recorded. */
  readonly gender?: string
  /** Medical record number. */
  readonly mrn?: string
  readonly death?: { readonly date?: string }
  /** Whether the record is not in use (R4 Patient.active), for example after a merge with another one. */
  readonly inactive?: true
  /** Whether the record is tagged as a fictitious test record. */
  readonly sample?: true
}

export interface PersonName {
  readonly family?: string
  readonly given?: string
  readonly title?: string
  /** The whole name, for records that have no parts. */
  readonly text?: string
}

type Fields = Readonly<Record<string, unknown>>

function listFields(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

function readTrimmed(value: unknown): string | undefined {
  return typeof value === 'string' ? toPlainLine(value) || undefined : undefined
}

function joinTexts(value: unknown): string | undefined {
  if (!Array.isArray(value)) return undefined
  return readTrimmed(value.filter(part => typeof part === 'string').join(' '))
}

/** Removes undefined properties: with `exactOptionalPropertyTypes`, an absent property may not be undefined. */
function dropUndefined<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

const USE_ORDER: readonly unknown[] = [
  'official',
  'usual',
  undefined,
  'temp',
  'nickname',
  'anonymous',
  'old',
  'maiden',
]

/** Picks the name to show: a current one, official before usual before the others (R4 HumanName.use). */
function pickName(names: readonly Fields[]): Fields | undefined {
  const rank = (name: Fields): number => {
    const place = USE_ORDER.indexOf(name.use)
    const ended = isRecord(name.period) && name.period.end !== undefined
    return (place < 0 ? USE_ORDER.length : place) + (ended ? 100 : 0)
  }
  return [...names].sort((a, b) => rank(a) - rank(b))[0]
}

function readName(names: readonly Fields[]): PersonName {
  const name = pickName(names)
  if (!name) return {}
  const given = [joinTexts(name.given), joinTexts(name.suffix)].filter(part => part !== undefined).join(' ')
  return dropUndefined({
    family: readTrimmed(name.family),
    given: readTrimmed(given),
    title: joinTexts(name.prefix),
    text: readTrimmed(name.text),
  })
}

function readMrn(identifiers: readonly Fields[]): string | undefined {
  const current = identifiers.filter(identifier => identifier.use !== 'old')
  const record = current.find(
    ({ type }) => isRecord(type) && listFields(type.coding).some(c => c.code === 'MR'),
  )
  return readTrimmed(record?.value)
}

const BIRTH_TIME = 'http://hl7.org/fhir/StructureDefinition/patient-birthTime'

function readBirth(patient: Resource): string | undefined {
  const more = patient._birthDate
  const time = isRecord(more) ? listFields(more.extension).find(({ url }) => url === BIRTH_TIME) : undefined
  return readTrimmed(time?.valueDateTime) ?? readTrimmed(patient.birthDate)
}

function readDeath(patient: Resource): Person['death'] {
  const date = readTrimmed(patient.deceasedDateTime)
  if (date !== undefined) return { date }
  return patient.deceasedBoolean === true ? {} : undefined
}

const ACT_REASON = 'http://terminology.hl7.org/CodeSystem/v3-ActReason'

function readSample({ meta }: Resource): true | undefined {
  const tags = isRecord(meta) ? listFields(meta.tag) : []
  return tags.some(({ system, code }) => system === ACT_REASON && code === 'HTEST') || undefined
}

/** Reads a Patient. Missing or malformed values are left out, never guessed. */
export function readPerson(patient: Resource): Person {
  return {
    id: patient.id ?? '',
    name: readName(listFields(patient.name)),
    ...dropUndefined({
      born: readBirth(patient),
      gender: readTrimmed(patient.gender),
      mrn: readMrn(listFields(patient.identifier)),
      death: readDeath(patient),
      inactive: patient.active === false || undefined,
      sample: readSample(patient),
    }),
  }
}

/** Keeps only letters, without case and accents: `Núñez-Ó` and `nunezo` look like the same name. */
function normalize(text: string | undefined): string {
  return (text ?? '')
    .slice(0, COMPARED_CHARACTERS)
    .normalize('NFD')
    .replace(/\p{Mark}/gu, '')
    .toLowerCase()
    .replace(/[^\p{Letter}]/gu, '')
}

/** Words that the names of different people have in common. */
const TITLES: ReadonlySet<string> = new Set(['dr', 'prof', 'mr', 'mrs', 'ms', 'md', 'phd'])

function listWords(...texts: readonly (string | undefined)[]): readonly string[] {
  const words = texts.flatMap(text => text?.split(/[\s,.-]+/) ?? []).map(normalize)
  return words.filter(word => word !== '' && !TITLES.has(word))
}

/** Whether no word of a name is in another one. False if either has no words. */
export function areUnlike({ family, given, text }: PersonName, other: string): boolean {
  const words = listWords(family, given, text)
  const others = listWords(other)
  return words.length > 0 && others.length > 0 && !words.some(word => others.includes(word))
}

function readFirstGiven(person: Person): string {
  return normalize(person.name.given?.split(' ')[0])
}

/** Whether two names are equal, one begins with the other (Alba, Alban), or they differ in one letter (two if long). */
function isNear(a: string, b: string): boolean {
  if (a === '' || b === '') return false
  const shorter = Math.min(a.length, b.length)
  if (shorter >= 3 && (a.startsWith(b) || b.startsWith(a))) return true
  return computeDistance(a, b) <= (shorter >= 6 ? 2 : 1)
}

/** Whether a name may be another spelling of the other: neither case, accents nor a letter or two make a difference. */
export function isNearName(a: string, b: string): boolean {
  return isNear(normalize(a), normalize(b))
}

/** Whether two patients are easily confused: the same family name and similar given names. */
function isAlike(a: Person, b: Person): boolean {
  if (a.id === b.id) return false
  const family = normalize(a.name.family)
  if (family === '' || family !== normalize(b.name.family)) return false
  return isNear(readFirstGiven(a), readFirstGiven(b))
}

export function findAlike(person: Person, others: readonly Person[]): readonly Person[] {
  return others.filter(other => isAlike(person, other))
}

/** Whether only the record number tells two patients apart. */
export function hasSameNameAndBirth(a: Person, b: Person): boolean {
  return (
    a.born !== undefined &&
    a.born === b.born &&
    normalize(a.name.family) === normalize(b.name.family) &&
    normalize(a.name.given) === normalize(b.name.given)
  )
}

/** The patients of a list who are easily confused with another patient of the list. */
export function findConfusable(people: readonly Person[]): ReadonlySet<Person> {
  const families = Map.groupBy(people, ({ name }) => normalize(name.family))
  return new Set(
    families.values().flatMap(family => family.filter(person => findAlike(person, family).length > 0)),
  )
}
