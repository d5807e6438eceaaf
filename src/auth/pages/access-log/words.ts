/** Accesses in the words of patients. */

import type { KeptRecord } from '../../../audit/index.ts'
import { findOwn } from '../../../core/index.ts'
import { parseScope } from '../../../smart/index.ts'
import { describeKind, joinWithAnd, nameCategory } from '../consent/texts.ts'
import type { WhoseRecord } from '../whose.ts'
import { CHANGING, type Visit } from './visits.ts'

/** Kinds of data that a sentence names; further ones are "other data". */
const NAMED = 12

/** Describes a visit: "Looked at your prescriptions and laboratory results. Added vital signs." */
export function describeVisit(visit: Visit, { possessive }: Pick<WhoseRecord, 'possessive'>): string {
  const byVerb = Map.groupBy(visit.toReversed(), ({ interaction }) => chooseVerb(interaction))
  const sentences = [...byVerb].flatMap(([verb, records]) => {
    const nouns = [...new Set(records.flatMap(nameData))]
    return nouns.length === 0 ? [] : [`${verb} ${possessive} ${joinNouns(nouns)}.`]
  })
  return sentences.length === 0 ? 'Looked up names of staff, places or medicines.' : sentences.join(' ')
}

/** Describes lists: "In a list of patients." */
export function describeLists(visit: Visit): string {
  const kinds = new Set(
    visit
      .toReversed()
      .map(({ resource_type: type }) =>
        type === null || type === 'Patient'
          ? 'a list of patients'
          : `a list of the ${nameKind(type)} of several patients`,
      ),
  )
  return `In ${joinWithAnd([...kinds])}.`
}

function chooseVerb(interaction: string | null): string {
  if (interaction === 'create') return 'Added to'
  if (interaction?.startsWith('delete')) return 'Removed from'
  return CHANGING.some(it => it === interaction) ? 'Changed' : 'Looked at'
}

function joinNouns(nouns: readonly string[]): string {
  if (nouns.includes(WHOLE_RECORD)) return WHOLE_RECORD
  return joinWithAnd(nouns.length > NAMED ? [...nouns.slice(0, NAMED), 'other data'] : nouns)
}

const WHOLE_RECORD = 'whole record'

/** Belongs to no patient. Apps look it up for names. */
const GENERAL: ReadonlySet<string> = new Set([
  'Practitioner',
  'PractitionerRole',
  'Organization',
  'Location',
  'HealthcareService',
  'Medication',
  'ValueSet',
  'CodeSystem',
])

const NOUNS: Readonly<Record<string, string>> = {
  Patient: 'personal details',
  Encounter: 'visits',
  // A request that names no category finds any of them.
  Observation: 'observations (such as measurements or laboratory results)',
}

function nameData(record: KeptRecord): readonly string[] {
  const { resource_type: type, request } = record
  if (type === null || type === '*' || request?.includes('$everything')) return [WHOLE_RECORD]
  if (GENERAL.has(type)) return []
  const named = listCategories(request ?? '').map(code => nameCategory(type, code))
  const known = named.filter(noun => noun !== undefined)
  if (known.length > 0 && known.length === named.length && mayReturn(record, known)) return known
  return [nameKind(type)]
}

function nameKind(type: string): string {
  return findOwn(NOUNS, type) ?? describeKind(type).noun
}

/**
 * Whether a request could return the categories that it named. A record keeps one of the scopes that allowed the request:
 * if that is for another category, the app may or may not have had one for these.
 */
function mayReturn({ decided_by: by }: KeptRecord, named: readonly string[]): boolean {
  const scope = parseScope(by ?? '')
  if (scope?.kind !== 'resource' || scope.query.length === 0) return true
  const categories = scope.query.flatMap(([name, value]) =>
    name === 'category' ? nameCategory(scope.type, readCode(value)) : [],
  )
  return named.every(noun => categories.includes(noun))
}

/** The codes of `category=laboratory` or `category=<system>|laboratory`. */
function listCategories(request: string): readonly string[] {
  const value = /[?&]category=([^&]*)/.exec(request)?.[1] ?? ''
  return value === '' ? [] : value.split(',').map(readCode)
}

function readCode(token: string): string {
  return token.split('|').at(-1) ?? ''
}
