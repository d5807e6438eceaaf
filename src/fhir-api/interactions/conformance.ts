import type { Handler } from '../context.ts'

/** `.well-known/smart-configuration`: where tokens come from. Public, and plain JSON. */
export const smartConfiguration: Handler<'smart-configuration'> = async context => ({
  status: 200,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify(context.smartConfiguration()),
})
