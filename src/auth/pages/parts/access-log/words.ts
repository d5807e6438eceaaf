/** Accesses in the words of patients. */

import { findOwn } from '../../../../core/index.ts'
import { type Permission, parseScope, parseScopes } from '../../../../smart/index.ts'
import { findPurpose } from '../../../base/purposes.ts'
import { describeKind, joinWithAnd, nameCategory } from '../../../words/scopes.ts'
import type { WhoseRecord } from '../whose.ts'
import type { Actors } from './actors.ts'
import type { AccessRecord } from './people.ts'
import { CHANGING, type Visit } from './visits.ts'

/** Kinds of data that a sentence names; further ones are "other data". */
const NAMED = 12

export interface DescribeOptions {
  readonly actors: Pick<Actors, 'findScope'>
  readonly whose: Pick<WhoseRecord, 'possessive' | 'record'>
}

/** Describes a visit: "Looked at your prescriptions and laboratory results. Added vital signs." */
export function describeVisit(
  visit: Visit,
  { actors, whose: { possessive, record: name } }: DescribeOptions,
): string {
  const oldestFirst = visit.toReversed()
  const acts = new Set(oldestFirst.flatMap(record => findPurpose(record)?.act?.(name) ?? []))
  const looks = oldestFirst.filter(record => findPurpose(record)?.act === undefined)
  const byVerb = Map.groupBy(looks, ({ interaction }) => chooseVerb(interaction))
  const sentences = [...byVerb].flatMap(([verb, records]) => {
    const nouns = [...new Set(records.flatMap(record => nameData(record, actors)))]
    return nouns.length === 0 ? [] : [`${verb} ${possessive} ${joinNouns(nouns)}.`]
  })
  const all = [...sentences, ...acts]
  return all.length === 0 ? 'Looked up names of staff, places or medicines.' : all.join(' ')
}

/** Describes lists: "In a list of patients." */
export function describeLists(visit: Visit): string {
  const kinds = new Set(
    visit
      .toReversed()
      .map(({ resource_type: type }) =>
        type === null || type === 'Patient'
          ? 'a list of patients'
          : `a list of the ${describeKind(type).noun} of several patients`,
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

/** For a request that could return any category of a type. */
const OF_ANY_CATEGORY: Readonly<Record<string, string>> = {
  Observation: 'measurements (such as vital signs or laboratory results)',
}

function nameData(record: AccessRecord, actors: DescribeOptions['actors']): readonly string[] {
  const { resource_type: type, request } = record
  if (type === null || type === '*' || request?.includes('$everything')) return [WHOLE_RECORD]
  if (GENERAL.has(type)) return []
  const granted = actors.findScope(record)
  const allowed = listAllowed(record, granted)
  const named = listCategories(request ?? '').map(code => nameCategory(type, code))
  const isNamed = named.length > 0 && named.every(noun => noun !== undefined)
  if (allowed === 'any') return isNamed ? named : [findOwn(OF_ANY_CATEGORY, type) ?? describeKind(type).noun]
  const both = isNamed ? named.filter(noun => allowed.includes(noun)) : allowed
  const isKnown = granted !== undefined || (isNamed && both.length === named.length)
  return isKnown && both.length > 0 ? both : [describeKind(type).noun]
}

/**
 * The categories that a request could touch, by the scopes of its grant. If that is no longer kept, by the scope in the record,
 * which is only one of those that allowed the request. Empty if something else than known categories limits them.
 */
function listAllowed(record: AccessRecord, granted: string | undefined): 'any' | readonly string[] {
  const { resource_type: type, decided_by: by, interaction } = record
  const decided = parseScope(by ?? '')
  if (decided?.kind !== 'resource' || decided.query.length === 0) return 'any'
  const permissions = choosePermissions(interaction)
  const nouns = parseScopes(granted ?? by).flatMap(scope => {
    if (scope.kind !== 'resource' || scope.type !== type) return []
    if (!permissions.some(permission => scope.permissions.has(permission))) return []
    return scope.query.map(([name, value]) =>
      name === 'category' ? nameCategory(scope.type, readCode(value)) : undefined,
    )
  })
  const known = nouns.filter(noun => noun !== undefined)
  return known.length === nouns.length ? [...new Set(known)] : []
}

function choosePermissions(interaction: string | null): readonly Permission[] {
  if (interaction === 'create') return ['c']
  if (interaction?.startsWith('delete')) return ['d']
  return CHANGING.some(it => it === interaction) ? ['c', 'u'] : ['r', 's']
}

/** The codes of `category=laboratory` or `category=<system>|laboratory`. */
function listCategories(request: string): readonly string[] {
  const value = /[?&]category=([^&]*)/.exec(request)?.[1] ?? ''
  return value === '' ? [] : value.split(',').map(readCode)
}

function readCode(token: string): string {
  return token.split('|').at(-1) ?? ''
}
