import { isRecord, type Params, searchParametersOf } from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import { typesIn } from '../search/types-in.ts'
import { found, judgeOf } from '../within.ts'
import type { Operation } from './operation.ts'
import { search } from './search.ts'

/**
 * `Patient/[id]/$everything`: what is in the patient's compartment and what it refers to, as a search, so that it
 * keeps to the same reach and pages the same way.
 */
export function everything(context: Context, call: Call<Operation>): Answer | Problem {
  const { id = '', params } = call.interaction
  const { repository } = context
  const patient = found(judgeOf(context, call), 'r', 'Patient', id, repository.find('Patient', id))
  if (isProblem(patient)) return patient
  if (patient.deleted) return { problem: 'gone', type: 'Patient', id }
  const posted = postedParams(call.body)
  if (isProblem(posted)) return posted
  const criteria = criteriaOf([...params, ...posted])
  if (isProblem(criteria)) return criteria
  const interaction = {
    kind: 'search-compartment',
    compartment: 'Patient',
    id,
    type: '*',
    params: [...criteria, ...typesIn(repository, id).flatMap(includeAll)],
  } as const
  return search(context, { ...call, interaction })
}

const TAKEN = new Set(['_type', '_count', '_format', '_pretty'])

function criteriaOf(params: Params): Params | Problem {
  const criteria: (readonly [string, string])[] = []
  for (const [name, value] of params) {
    if (name === '_since') criteria.push(['_lastUpdated', `ge${value}`])
    else if (TAKEN.has(name)) criteria.push([name, value])
    else
      return {
        problem: 'bad-search',
        code: 'not-supported',
        text: `Cannot use ${name} with $everything: it takes _since, _type and _count`,
      }
  }
  return criteria
}

/** The parameters of a Parameters resource, as an address would say them. */
function postedParams(body: unknown): Params | Problem {
  if (body === undefined) return []
  const { resourceType, parameter = [] } = isRecord(body) ? body : {}
  if (resourceType !== 'Parameters' || !Array.isArray(parameter)) return unreadable
  const params: (readonly [string, string])[] = []
  for (const { name, ...rest } of parameter.filter(isRecord)) {
    const [value, ...others] = Object.values(rest)
    const isPlain = typeof value === 'string' || typeof value === 'number'
    if (typeof name !== 'string' || !isPlain || others.length > 0) return unreadable
    params.push([name, String(value)])
  }
  return params
}

const unreadable: Problem = {
  problem: 'malformed-body',
  text: 'Cannot read body: expected Parameters with a value each',
}

function includeAll(type: string): Params {
  return searchParametersOf(type).some(it => it.type === 'reference') ? [['_include', `${type}:*`]] : []
}
