import { getPath, respondWithPage, type Search } from '../../../fhir-api/index.ts'
import { toAnswer } from '../answer.ts'
import type { Handler } from '../call.ts'
import { isProblem } from '../problem.ts'
import { findPage } from '../search/find-page.ts'
import { turnPage } from '../search/turn-page.ts'

/** Searches a type, several types, or a compartment: as an entry of a Bundle. */
export const search: Handler<Search['kind']> = (context, begun) => {
  const path = getPath(begun.interaction)
  const turned = turnPage(context, begun, path)
  if (isProblem(turned)) return turned
  const page = findPage(context, turned.call, turned.after)
  return isProblem(page) ? page : toAnswer(respondWithPage(context, turned.call, path, page))
}
