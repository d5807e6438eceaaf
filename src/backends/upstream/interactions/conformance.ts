import { isProblem } from '../../../fhir/index.ts'
import type { Handler } from '../call.ts'

/** `metadata`: what can be done through here. Public (contract 5.6). */
export const capabilities: Handler<'capabilities'> = async context => {
  const statement = await context.capabilities()
  return isProblem(statement) ? statement : { status: 200, headers: {}, body: JSON.stringify(statement) }
}
