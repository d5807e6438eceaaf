import { isFailure } from '../../core/index.ts'
import { findSearchParameter } from '../definitions.ts'
import type { Params } from '../interaction.ts'
import { INCLUDE_RULES, PAGE_RESOURCES } from '../limits.ts'
import { failFor } from '../reasons/reasons.ts'
import type { Work } from '../work.ts'
import type { BadSearch } from './bad-search.ts'
import type { SearchClause } from './clause.ts'
import { parseSearch, SearchSteps } from './parse-search.ts'
import { type IncludeRule, listElements, parseInclude, type Shape } from './result-parameters.ts'

/** The parsed parameters of a search. */
export interface Query {
  readonly types: readonly TypeQuery[]
  readonly sort: readonly SortKey[]
  readonly count: number
  readonly total: 'none' | 'estimate' | 'accurate' | undefined
  readonly includes: readonly IncludeRule[]
  readonly shape: Shape
  /** The supported parameters, for the self link (R4 search.html#conformance). */
  readonly used: Params
}

export interface TypeQuery {
  readonly type: string
  readonly clauses: readonly SearchClause[]
}

export interface SortKey {
  readonly parameter: string
  readonly descending: boolean
}

export const DEFAULT_COUNT = 50

// `acceptsJson` reads the format.
const IGNORED = new Set(['_format', '_pretty'])

interface Draft {
  sort: SortKey[]
  count: number
  total: Query['total']
  includes: IncludeRule[]
  summary: Shape['summary']
  elements: string[]
}

/** Chained parameters of a search, as the decision about it has parsed them. */
export type ParsedChains = ReadonlyMap<Params[number], SearchClause>

export interface QueryReading {
  readonly baseUrl: string
  /** Whether an unknown parameter is ignored. */
  readonly lenient: boolean
  readonly work: Work
  readonly chains?: ParsedChains | undefined
}

/** Parses the parameters of a search. */
export function parseQuery(
  types: readonly string[],
  params: Params,
  reading: QueryReading,
): Query | BadSearch {
  const draft: Draft = {
    sort: [],
    count: DEFAULT_COUNT,
    total: undefined,
    includes: [],
    summary: 'false',
    elements: [],
  }
  const clauses = new Map<string, SearchClause[]>(types.map(type => [type, []]))
  const used: (readonly [string, string])[] = []
  const { lenient, work } = reading
  const steps = new SearchSteps(work)
  for (const pair of params) {
    const outcome =
      parseResultParameter(types, pair, draft) ?? parseCriterion(types, pair, reading, clauses, steps)
    if (outcome === 'understood') used.push(pair)
    else if (outcome !== 'ignored' && !(lenient && outcome.reason === 'parameter-unknown')) return outcome
  }
  const { summary, elements, ...rest } = draft
  return {
    ...rest,
    types: [...clauses].map(([type, list]) => ({ type, clauses: list })),
    shape: { summary, elements },
    used,
  }
}

type Parsed = 'understood' | 'ignored' | BadSearch

function parseCriterion(
  types: readonly string[],
  pair: Params[number],
  { baseUrl, chains }: QueryReading,
  clauses: Map<string, SearchClause[]>,
  steps: SearchSteps,
): Parsed {
  for (const type of types) {
    const clause = chains?.get(pair) ?? parseSearch(type, ...pair, baseUrl, steps)
    if (isFailure(clause)) return clause
    clauses.get(type)?.push(clause)
  }
  return 'understood'
}

/** Undefined if the parameter is a search criterion. */
function parseResultParameter(
  types: readonly string[],
  [name, value]: readonly [string, string],
  draft: Draft,
): Parsed | undefined {
  if (IGNORED.has(name)) return 'ignored'
  switch (name) {
    case '_sort':
      return parseSort(types, value, draft)
    case '_count':
      return parseCount(value, draft)
    case '_total':
      return parseChoice(name, value, ['none', 'estimate', 'accurate'], it => {
        draft.total = it
      })
    case '_summary':
      return parseChoice(name, value, ['true', 'text', 'data', 'count', 'false'], it => {
        draft.summary = it
      })
    case '_elements':
      draft.elements.push(...listElements(value))
      return 'understood'
    case '_contained':
      return parseChoice(name, value, ['false'], () => {})
    case '_include':
    case '_include:iterate':
    case '_include:recurse':
    case '_revinclude':
    case '_revinclude:iterate':
    case '_revinclude:recurse': {
      const rules = parseInclude(name, value, types)
      if (isFailure(rules)) return rules
      if (draft.includes.length + rules.length > INCLUDE_RULES)
        return failFor('include-rules-too-many', { most: INCLUDE_RULES })
      draft.includes.push(...rules)
      return 'understood'
    }
    default:
      return undefined
  }
}

function parseCount(value: string, draft: Draft): Parsed {
  if (!/^\d{1,9}$/.test(value)) return failFor('count-malformed', { most: PAGE_RESOURCES })
  draft.count = Math.min(Number(value), PAGE_RESOURCES)
  return 'understood'
}

function parseSort(types: readonly string[], value: string, draft: Draft): Parsed {
  for (const text of value.split(',')) {
    const descending = text.startsWith('-')
    const parameter = descending ? text.slice(1) : text
    for (const type of types) {
      const kind = findSearchParameter(type, parameter)?.type
      if (kind === undefined || kind === 'composite' || kind === 'special')
        return failFor('sort-unknown', { type, parameter })
    }
    draft.sort.push({ parameter, descending })
  }
  return 'understood'
}

function parseChoice<T extends string>(
  name: string,
  value: string,
  choices: readonly T[],
  take: (choice: T) => void,
): Parsed {
  const choice = choices.find(it => it === value)
  if (choice === undefined) return failFor('choice-unknown', { parameter: name, choices: choices.join(', ') })
  take(choice)
  return 'understood'
}
