import { type Params, searchParametersOf } from '../../fhir/index.ts'
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
  const criteria = criteriaOf(params)
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

function includeAll(type: string): Params {
  return searchParametersOf(type).some(it => it.type === 'reference') ? [['_include', `${type}:*`]] : []
}
