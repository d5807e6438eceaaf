import { parseDateRange } from '../date-range.ts'
import { isRecord } from '../resource.ts'

type Values = Readonly<Record<string, unknown>>

/** A rule of the R4 definitions that cardinality and types do not say. `key` is the name that R4 gives it. */
export interface Invariant {
  readonly key: string
  readonly text: string
  readonly holds: (value: Values) => boolean
}

/** The rules of a type that are errors in R4, cheap, and about one value. */
export function listInvariants(name: string): readonly Invariant[] {
  return table.get(name) ?? []
}

function needs(key: string, name: string, other: string): Invariant {
  return { key, text: `${name} needs ${other}`, holds: it => !has(it, name) || has(it, other) }
}

function has(value: Values, name: string): boolean {
  return value[name] !== undefined || value[`_${name}`] !== undefined
}

function hasChoice(value: Values, name: string): boolean {
  return Object.keys(value).some(key => key.startsWith(name) || key.startsWith(`_${name}`))
}

function findCodes(value: unknown): readonly unknown[] {
  const codings = isRecord(value) && Array.isArray(value.coding) ? value.coding : []
  return codings.filter(isRecord).map(it => it.code)
}

function records(value: unknown): readonly Values[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

function isOrdered(start: unknown, end: unknown): boolean {
  if (typeof start !== 'string' || typeof end !== 'string') return true
  const [first, last] = [parseDateRange(start), parseDateRange(end)]
  return first === undefined || last === undefined || first.low <= last.high
}

function isUnique(values: readonly unknown[]): boolean {
  const given = values.filter(it => it !== undefined)
  return new Set(given).size === given.length
}

function formatVersionedUrl(entry: Values): string | undefined {
  if (entry.fullUrl === undefined) return undefined
  const meta = isRecord(entry.resource) && isRecord(entry.resource.meta) ? entry.resource.meta : {}
  return `${entry.fullUrl} ${meta.versionId}`
}

function amount(value: unknown): number | undefined {
  return isRecord(value) && typeof value.value === 'number' ? value.value : undefined
}

const quantity = [needs('qty-3', 'code', 'system')]

const table: ReadonlyMap<string, readonly Invariant[]> = new Map<string, readonly Invariant[]>([
  [
    'Extension',
    [
      {
        key: 'ext-1',
        text: 'An extension has either a value or extensions',
        holds: it => has(it, 'extension') !== hasChoice(it, 'value'),
      },
    ],
  ],
  ['Quantity', quantity],
  ['Age', quantity],
  ['Count', quantity],
  ['Distance', quantity],
  ['Duration', quantity],
  [
    'Period',
    [{ key: 'per-1', text: 'The end is before the start', holds: it => isOrdered(it.start, it.end) }],
  ],
  [
    'Range',
    [
      {
        key: 'rng-2',
        text: 'The high value is under the low value',
        holds: it => (amount(it.low) ?? -Infinity) <= (amount(it.high) ?? Infinity),
      },
    ],
  ],
  [
    'Ratio',
    [
      {
        key: 'rat-1',
        text: 'A ratio has both numerator and denominator',
        holds: it =>
          has(it, 'numerator') === has(it, 'denominator') && (has(it, 'numerator') || has(it, 'extension')),
      },
    ],
  ],
  ['ContactPoint', [needs('cpt-2', 'value', 'system')]],
  ['Attachment', [needs('att-1', 'data', 'contentType')]],
  [
    'Timing.repeat',
    [
      needs('tim-1', 'duration', 'durationUnit'),
      needs('tim-2', 'period', 'periodUnit'),
      needs('tim-6', 'periodMax', 'period'),
      needs('tim-7', 'durationMax', 'duration'),
      needs('tim-8', 'countMax', 'count'),
      needs('tim-9', 'offset', 'when'),
      {
        key: 'tim-10',
        text: 'timeOfDay and when exclude each other',
        holds: it => !(has(it, 'timeOfDay') && has(it, 'when')),
      },
    ],
  ],
  [
    'Patient.contact',
    [
      {
        key: 'pat-1',
        text: 'A contact has a name, telecom, address or organization',
        holds: it => ['name', 'telecom', 'address', 'organization'].some(name => has(it, name)),
      },
    ],
  ],
  [
    'Organization',
    [
      {
        key: 'org-1',
        text: 'An organization has a name or an identifier',
        holds: it => has(it, 'name') || has(it, 'identifier'),
      },
    ],
  ],
  [
    'Observation',
    [
      {
        key: 'obs-6',
        text: 'dataAbsentReason and a value exclude each other',
        holds: it => !(has(it, 'dataAbsentReason') && hasChoice(it, 'value')),
      },
    ],
  ],
  [
    'Observation.referenceRange',
    [
      {
        key: 'obs-3',
        text: 'A reference range has low, high or text',
        holds: it => ['low', 'high', 'text'].some(name => has(it, name)),
      },
    ],
  ],
  [
    'Condition',
    [
      {
        key: 'con-4',
        text: 'A condition that abated is inactive, resolved or in remission',
        holds: it =>
          !hasChoice(it, 'abatement') ||
          findCodes(it.clinicalStatus).some(
            code => code === 'resolved' || code === 'remission' || code === 'inactive',
          ),
      },
      {
        key: 'con-5',
        text: 'A condition that was entered in error has no clinicalStatus',
        holds: it =>
          !(has(it, 'clinicalStatus') && findCodes(it.verificationStatus).includes('entered-in-error')),
      },
    ],
  ],
  [
    'AllergyIntolerance',
    [
      {
        key: 'ait-1',
        text: 'clinicalStatus is needed unless the allergy was entered in error',
        holds: it =>
          has(it, 'clinicalStatus') || findCodes(it.verificationStatus).includes('entered-in-error'),
      },
      {
        key: 'ait-2',
        text: 'An allergy that was entered in error has no clinicalStatus',
        holds: it =>
          !(has(it, 'clinicalStatus') && findCodes(it.verificationStatus).includes('entered-in-error')),
      },
    ],
  ],
  [
    'Bundle',
    [
      {
        key: 'bdl-1',
        text: 'Only a search or history has a total',
        holds: it => !has(it, 'total') || it.type === 'searchset' || it.type === 'history',
      },
      {
        key: 'bdl-3',
        text: 'Each entry of a batch, transaction or history, and no other, has a request',
        holds: it =>
          records(it.entry).every(
            entry => has(entry, 'request') === ['batch', 'transaction', 'history'].includes(String(it.type)),
          ),
      },
      {
        key: 'bdl-7',
        text: 'Entries have different fullUrls, or different versions',
        holds: it => it.type === 'history' || isUnique(records(it.entry).map(formatVersionedUrl)),
      },
    ],
  ],
  [
    'Bundle.entry',
    [
      {
        key: 'bdl-5',
        text: 'An entry has a resource, a request or a response',
        holds: it => has(it, 'resource') || has(it, 'request') || has(it, 'response'),
      },
    ],
  ],
])
