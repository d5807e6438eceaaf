import { isRecord, toPlainLine } from '../core/index.ts'
import { formatDose, nameCodeSystem } from '../web/person/index.ts'
import { CELL_CHARACTERS } from './limits.ts'
import type { FhirJson } from './tool.ts'

/** What a resource says, in one line. JSON leaves out what is undefined. */
export interface Row {
  readonly reference: string
  readonly date: string | undefined
  readonly what: string
  readonly value: string | undefined
  readonly status: string | undefined
}

export function describeRow(resource: FhirJson, most: number = CELL_CHARACTERS): Row {
  const date = readFirst(resource, DATES)
  const value = shorten(describeValue(resource), most)
  const status = shorten(describeStatus(resource), most)
  return {
    reference: `${resource.resourceType}/${resource.id}`,
    date: date === undefined ? undefined : shorten(date, most),
    what: shorten(describeSubject(resource), most),
    value: value === '' ? undefined : value,
    status: status === '' ? undefined : status,
  }
}

/** One line for each row. The texts are those of the record, without characters that change the line. */
export function formatRow({ reference, date = 'no date', what, value, status }: Row): string {
  const said = (text: string | undefined) => (text === undefined ? '' : ` | ${text}`)
  return `${date} | ${what}${said(value)}${said(status)} | ${reference}`
}

/** A text of the record on one line, cut off if it is long. */
export function shorten(text: string, most: number = CELL_CHARACTERS): string {
  const line = PLAIN.test(text) ? text : toPlainLine(text).replace(/\s+/g, ' ')
  return line.length <= most ? line : `${line.slice(0, most)}…`
}

/** Most texts have neither controls nor more than one space in a row. */
const PLAIN = /^(?:[!-~]+(?: [!-~]+)*)?$/

/** The first of these that a resource has, as recorded. */
const DATES = [
  'effectiveDateTime',
  'effectivePeriod.start',
  'effectiveInstant',
  'onsetDateTime',
  'onsetPeriod.start',
  'occurrenceDateTime',
  'occurrencePeriod.start',
  'performedDateTime',
  'performedPeriod.start',
  'authoredOn',
  'period.start',
  'recordedDate',
  'whenHandedOver',
  'started',
  'start',
  'date',
  'created',
  'issued',
  'recorded',
  'birthDate',
].map(split)

const SUBJECTS = [
  'code',
  'vaccineCode',
  'medicationCodeableConcept',
  'medicationReference',
  'description',
  'type',
  'serviceType',
  'category',
  'name',
  'title',
  'class',
  'questionnaire',
].map(split)

function describeSubject(resource: FhirJson): string {
  for (const path of SUBJECTS) {
    const text = sayAny(read(resource, path))
    if (text !== '') return text
  }
  return String(resource.resourceType)
}

function describeStatus(resource: FhirJson): string {
  const { status, clinicalStatus, verificationStatus } = resource
  const verified = readCode(verificationStatus)
  const stated = typeof status === 'string' ? status : readCode(clinicalStatus)
  return joinTexts([stated, verified === 'confirmed' ? '' : verified], ', ')
}

function readCode(concept: unknown): string {
  const [coding] = listRecords(isRecord(concept) ? concept.coding : undefined)
  return typeof coding?.code === 'string' ? coding.code : ''
}

function describeValue(resource: FhirJson): string {
  switch (resource.resourceType) {
    case 'Observation':
      return describeResult(resource)
    case 'MedicationRequest':
    case 'MedicationDispense':
    case 'MedicationStatement':
      return joinTexts(
        listRecords(resource.dosageInstruction ?? resource.dosage).map(dosage => formatDose(sayAny(dosage))),
      )
    case 'AllergyIntolerance':
      return joinTexts([
        typeof resource.criticality === 'string' ? `criticality ${resource.criticality}` : '',
        ...listRecords(resource.reaction).flatMap(({ manifestation }) =>
          listRecords(manifestation).map(sayPlainly),
        ),
      ])
    case 'Condition':
      return sayPlainly(resource.severity)
    case 'DiagnosticReport':
      return typeof resource.conclusion === 'string' ? resource.conclusion : ''
    case 'Encounter':
      return joinTexts([readPeriodEnd(resource), ...listRecords(resource.reasonCode).map(sayPlainly)])
    default:
      return ''
  }
}

function readPeriodEnd(resource: FhirJson): string {
  const end = isRecord(resource.period) ? resource.period.end : undefined
  return typeof end === 'string' ? `until ${end}` : ''
}

/** The value of an Observation with unit, interpretation and reference range, and those of its components. */
function describeResult(observation: FhirJson): string {
  const own = describeMeasured(observation)
  const parts = listRecords(observation.component).map(
    component => `${sayPlainly(component.code)} ${describeMeasured(component)}`,
  )
  return joinTexts([own, ...parts])
}

function describeMeasured(measured: FhirJson): string {
  const name = Object.keys(measured).find(it => it.startsWith('value'))
  const said = name === undefined ? '' : sayAny(measured[name])
  const known = said === '' ? sayPlainly(measured.dataAbsentReason) : said
  const notes = joinTexts([
    ...listRecords(measured.interpretation).map(sayPlainly),
    ...listRecords(measured.referenceRange).map(describeRange),
  ])
  return notes === '' ? known : `${known} (${notes})`
}

function describeRange({ low, high, text }: FhirJson): string {
  if (typeof text === 'string') return `range ${text}`
  const from = sayAny(low)
  const to = sayAny(high)
  if (from !== '' && to !== '') return `range ${from} to ${to}`
  return from === '' ? (to === '' ? '' : `range up to ${to}`) : `range from ${from}`
}

/** The texts that say something. */
function joinTexts(texts: readonly string[], separator = '; '): string {
  return texts.reduce((all, text) => (all === '' || text === '' ? all + text : all + separator + text), '')
}

/** A value of any data type: text, number with unit, concept with its code, period, reference, name. */
function sayAny(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return value.map(sayAny).find(it => it !== '') ?? ''
  if (!isRecord(value)) return ''
  if (Array.isArray(value.coding)) return sayConcept(value)
  if (typeof value.value === 'number') return sayQuantity(value)
  const { start, end, numerator, denominator, low, high } = value
  if (start !== undefined || end !== undefined) return `${start ?? '…'} to ${end ?? '…'}`
  if (numerator !== undefined) return `${sayAny(numerator)} / ${sayAny(denominator)}`
  if (low !== undefined || high !== undefined) return `${sayAny(low)} to ${sayAny(high)}`
  return (
    [value.text, value.display, value.code, value.family, value.reference].find(
      it => typeof it === 'string',
    ) ?? ''
  ).toString()
}

function sayQuantity({ value, comparator = '', unit, code }: FhirJson): string {
  const measured = unit ?? code
  return `${comparator}${value}${typeof measured === 'string' ? ` ${measured}` : ''}`
}

function sayConcept(concept: FhirJson): string {
  const text = sayPlainly(concept)
  for (const { system, code } of listRecords(concept.coding)) {
    const name = nameCodeSystem(system)
    if (name !== undefined) return `${text} [${name} ${code}]`
  }
  return text
}

/** A concept without its code, if it has a text. */
function sayPlainly(concept: unknown): string {
  if (!isRecord(concept)) return ''
  if (isText(concept.text)) return concept.text
  const codings = listRecords(concept.coding)
  return codings.map(it => it.display).find(isText) ?? codings.map(it => it.code).find(isText) ?? ''
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function readFirst(resource: FhirJson, paths: readonly Path[]): string | undefined {
  for (const path of paths) {
    const value = read(resource, path)
    if (typeof value === 'string') return value
  }
  return undefined
}

/** The name of an element, and that of one in it. */
type Path = readonly [outer: string, inner: string | undefined]

function split(path: string): Path {
  const [outer = '', inner] = path.split('.')
  return [outer, inner]
}

function read(resource: FhirJson, [outer, inner]: Path): unknown {
  const value = resource[outer]
  if (inner === undefined) return value
  return isRecord(value) ? value[inner] : undefined
}

export function listRecords(value: unknown): readonly FhirJson[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}
