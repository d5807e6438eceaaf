import type { Handler } from '../context.ts'
import { isFailure } from '../failure.ts'

/** `metadata`: what the server can do. Public. */
export const capabilities: Handler<'capabilities'> = async context => {
  const statement = await context.capabilities()
  return isFailure(statement) ? statement : { status: 200, body: statement }
}

/** `.well-known/smart-configuration`: where tokens come from. Public, and plain JSON. */
export const smartConfiguration: Handler<'smart-configuration'> = async context => ({
  status: 200,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify(context.smartConfiguration()),
})
