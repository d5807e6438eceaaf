import { everythingProblem, fail, type Params, postedParams, searchParametersOf } from '../../fhir/index.ts'
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
  if (patient.deleted) return fail({ problem: 'gone', type: 'Patient', id })
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

function criteriaOf(params: Params): Params | Problem {
  return (
    everythingProblem(params) ??
    params.map(([name, value]) => (name === '_since' ? ['_lastUpdated', `ge${value}`] : [name, value]))
  )
}

function includeAll(type: string): Params {
  return searchParametersOf(type).some(it => it.type === 'reference') ? [['_include', `${type}:*`]] : []
}
