import { isFailure } from '../../core/index.ts'
import { findSearchParameter, isResourceType, resourceTypes } from '../definitions.ts'
import { CHAIN_LINKS, SEARCH_STEPS } from '../limits.ts'
import type { SearchParameter } from '../resource.ts'
import type { Work } from '../work.ts'
import { failSearch, isTooCostly, type SearchError } from './bad-search.ts'
import type { ChainClause, HasClause, SearchClause } from './clause.ts'
import { parseClause } from './parse-clause.ts'
import { split } from './values.ts'

/**
 * Parses one decoded search parameter of a type: `name` with its modifier or chain, and `value`. References below
 * `baseUrl` are local. An unsupported parameter is an error, never ignored.
 */
export function parseSearch(
  type: string,
  name: string,
  value: string,
  baseUrl: string,
  steps: SearchSteps,
): SearchClause | SearchError {
  const values = split(value, ',')
  const reading = { value, values, baseUrl, steps, clauses: new Map() }
  return steps.take(values.length) ?? parseAt(type, name, reading, 0)
}

/**
 * Parses a parameter whose work is not counted here: one of the grant, which is limited when it is read, or a parameter
 * without a chain that was counted when the search was parsed.
 */
export function parseUncounted(
  type: string,
  name: string,
  value: string,
  baseUrl: string,
): SearchClause | SearchError {
  return parseSearch(type, name, value, baseUrl, new SearchSteps(undefined))
}

/**
 * The steps to parse one search: one for each value and each type that it is parsed for. All parameters of the search share
 * them, because each link of a chain may lead to many types.
 */
export class SearchSteps {
  readonly #work: Work | undefined
  #left = SEARCH_STEPS

  constructor(work: Work | undefined) {
    this.#work = work
  }

  /** Counts steps before they are taken. */
  take(steps: number): SearchError | undefined {
    this.#left -= steps
    if (this.#left < 0) return TOO_COSTLY
    const failure = this.#work?.count('value', steps)
    return failure && failSearch('search-costs-too-much')
  }
}

interface Reading {
  readonly value: string
  readonly values: readonly string[]
  readonly baseUrl: string
  readonly steps: SearchSteps
  /** By parameter and modifier: most types that a chain leads to have the same parameter, and share its clause. */
  readonly clauses: Map<string, SearchClause | SearchError>
}

function parseAt(type: string, name: string, reading: Reading, links: number): SearchClause | SearchError {
  if (links > CHAIN_LINKS) return failSearch('chain-too-long', { most: CHAIN_LINKS })
  if (name.startsWith('_has:')) return parseHas(type, name, reading, links)
  const dot = name.indexOf('.')
  if (dot >= 0) return parseChain(type, name.slice(0, dot), name.slice(dot + 1), reading, links)
  const { code, modifier } = stripModifier(name)
  const parameter = findSearchParameter(type, code)
  if (parameter === undefined) return createUnknown(type, code)
  return parseShared(parameter, modifier, reading)
}

function parseShared(
  parameter: SearchParameter,
  modifier: string | undefined,
  reading: Reading,
): SearchClause | SearchError {
  const key = `${parameter.code}:${modifier ?? ''} ${parameter.type} ${parameter.target?.join() ?? ''}`
  const known = reading.clauses.get(key)
  if (known) return known
  const clause = parseClause(parameter, modifier, reading)
  reading.clauses.set(key, clause)
  return clause
}

const TOO_COSTLY = failSearch('search-steps-too-many', { most: SEARCH_STEPS })

function parseChain(
  type: string,
  link: string,
  rest: string,
  reading: Reading,
  links: number,
): ChainClause | SearchError {
  const { code, modifier } = stripModifier(link)
  const parameter = findSearchParameter(type, code)
  if (parameter === undefined) return createUnknown(type, code)
  if (parameter.type !== 'reference') {
    return failSearch('chain-not-a-reference', { parameter: code })
  }
  const types = listTargets(parameter, modifier)
  if (types === undefined) return failSearch('chain-target-unknown', { parameter: code, type: `${modifier}` })
  const excess = reading.steps.take(types.length * reading.values.length)
  if (excess) return excess
  const found = types.map(it => ({ type: it, clause: parseAt(it, rest, reading, links + 1) }))
  const errors = found.flatMap(({ clause }) => (isFailure(clause) ? [clause] : []))
  const costly = errors.find(it => isTooCostly(it))
  if (costly) return costly
  const targets = found.flatMap(it => (isFailure(it.clause) ? [] : [{ type: it.type, clause: it.clause }]))
  if (targets.length > 0) return { kind: 'chain', parameter: code, targets }
  return findWorst(errors) ?? createUnknown(type, `${link}.${rest}`)
}

function listTargets(
  parameter: SearchParameter,
  modifier: string | undefined,
): readonly string[] | undefined {
  const targets = parameter.target ?? resourceTypes
  if (modifier === undefined) return targets
  return targets.includes(modifier) ? [modifier] : undefined
}

/** Of the errors of all targets, preferably one about the value instead of the name. */
function findWorst(errors: readonly SearchError[]): SearchError | undefined {
  return errors.find(it => it.reason !== 'parameter-unknown') ?? (errors.length === 1 ? errors[0] : undefined)
}

/** `_has:Observation:patient:code` */
function parseHas(type: string, name: string, reading: Reading, links: number): HasClause | SearchError {
  const [, from, reference, ...rest] = name.split(':')
  if (from === undefined || reference === undefined || rest.length === 0 || !isResourceType(from)) {
    return failSearch('has-malformed', { parameter: name })
  }
  const parameter = findSearchParameter(from, reference)
  if (parameter === undefined) return createUnknown(from, reference)
  if (
    parameter.type !== 'reference' ||
    (parameter.target !== undefined && !parameter.target.includes(type))
  ) {
    return failSearch('has-not-a-reference', { parameter: `${from}.${reference}`, type })
  }
  const clause = parseAt(from, rest.join(':'), reading, links + 1)
  return isFailure(clause) ? clause : { kind: 'has', type: from, parameter: reference, clause }
}

function stripModifier(name: string): { readonly code: string; readonly modifier: string | undefined } {
  const colon = name.indexOf(':')
  return colon < 0
    ? { code: name, modifier: undefined }
    : { code: name.slice(0, colon), modifier: name.slice(colon + 1) }
}

function createUnknown(type: string, code: string): SearchError {
  return failSearch('parameter-unknown', { parameter: code, type })
}
