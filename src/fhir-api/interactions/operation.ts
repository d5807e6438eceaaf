import { fail } from '../../fhir/index.ts'
import type { Handler } from '../context.ts'
import { everythingOf } from './everything.ts'
import { lastN } from './last-n.ts'
import { validateResource } from './validate.ts'

/** The operations that are performed here, by name and level. */
const OPERATIONS: Readonly<Record<string, Handler<'operation'>>> = {
  'Patient/id/$everything': everythingOf('Patient'),
  'Encounter/id/$everything': everythingOf('Encounter'),
  'Observation/$lastn': lastN,
  'type/$validate': validateResource,
  'type/id/$validate': validateResource,
}

export const operation: Handler<'operation'> = async (context, request) => {
  const { name, type, id } = request.interaction
  const level = id === undefined ? '' : '/id'
  const handler = OPERATIONS[`${type}${level}/${name}`] ?? (type && OPERATIONS[`type${level}/${name}`])
  if (handler) return handler(context, request)
  return context.session.operation?.(request) ?? fail({ problem: 'unsupported-operation', name })
}
