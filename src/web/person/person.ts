import type { Resource } from '../../fhir/index.ts'

/** What identifies a person on a page, read once from a FHIR Patient (or Practitioner, for the name). */
export interface Person {
  readonly id: string
  readonly name: PersonName
  /** FHIR date, with the time of birth where that is recorded. */
  readonly born?: string
  /** FHIR `gender` as recorded. */
  readonly gender?: string
  /** Medical record number. */
  readonly mrn?: string
  readonly death?: { readonly date?: string }
  /** Made up, and tagged so. */
  readonly sample?: true
}

export interface PersonName {
  readonly family?: string
  readonly given?: string
  readonly title?: string
  /** The whole name where only that is recorded. */
  readonly text?: string
}

type Fields = Readonly<Record<string, unknown>>

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : []
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

function joined(value: unknown): string | undefined {
  if (!Array.isArray(value)) return undefined
  return textOf(value.filter(part => typeof part === 'string').join(' '))
}

/** Drops what is not there: absent and undefined are not the same to the compiler. */
function present<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
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

/** The name to show: in use now, official before usual before the rest (R4 HumanName.use). */
function pickName(names: readonly Fields[]): Fields | undefined {
  const rank = (name: Fields): number => {
    const place = USE_ORDER.indexOf(name.use)
    const ended = isFields(name.period) && name.period.end !== undefined
    return (place < 0 ? USE_ORDER.length : place) + (ended ? 100 : 0)
  }
  return [...names].sort((a, b) => rank(a) - rank(b))[0]
}

function readName(names: readonly Fields[]): PersonName {
  const name = pickName(names)
  if (!name) return {}
  const given = [joined(name.given), joined(name.suffix)].filter(part => part !== undefined).join(' ')
  return present({
    family: textOf(name.family),
    given: textOf(given),
    title: joined(name.prefix),
    text: textOf(name.text),
  })
}

function readMrn(identifiers: readonly Fields[]): string | undefined {
  const current = identifiers.filter(identifier => identifier.use !== 'old')
  const record = current.find(({ type }) => isFields(type) && listOf(type.coding).some(c => c.code === 'MR'))
  return textOf(record?.value)
}

const BIRTH_TIME = 'http://hl7.org/fhir/StructureDefinition/patient-birthTime'

function readBirth(patient: Resource): string | undefined {
  const more = patient._birthDate
  const time = isFields(more) ? listOf(more.extension).find(({ url }) => url === BIRTH_TIME) : undefined
  return textOf(time?.valueDateTime) ?? textOf(patient.birthDate)
}

function readDeath(patient: Resource): Person['death'] {
  const date = textOf(patient.deceasedDateTime)
  if (date !== undefined) return { date }
  return patient.deceasedBoolean === true ? {} : undefined
}

const ACT_REASON = 'http://terminology.hl7.org/CodeSystem/v3-ActReason'

function readSample({ meta }: Resource): true | undefined {
  const tags = isFields(meta) ? listOf(meta.tag) : []
  return tags.some(({ system, code }) => system === ACT_REASON && code === 'HTEST') || undefined
}

/** Reads a Patient as it came over the wire. Whatever is missing or odd is left out, never guessed. */
export function readPerson(patient: Resource): Person {
  return {
    id: patient.id ?? '',
    name: readName(listOf(patient.name)),
    ...present({
      born: readBirth(patient),
      gender: textOf(patient.gender),
      mrn: readMrn(listOf(patient.identifier)),
      death: readDeath(patient),
      sample: readSample(patient),
    }),
  }
}
