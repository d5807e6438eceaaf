import type { Grant } from '../smart/index.ts'
import type { Tool } from './tool.ts'
import { describeType } from './tools/describe-type.ts'
import { listProposals } from './tools/list-proposals.ts'
import { listTypes } from './tools/list-types.ts'
import { proposeChange } from './tools/propose-change.ts'
import { read } from './tools/read.ts'
import { search } from './tools/search.ts'
import { summary } from './tools/summary.ts'

/** In the order in which clients see them. */
export const TOOLS: readonly Tool[] = [
  summary,
  search,
  read,
  describeType,
  listTypes,
  proposeChange,
  listProposals,
]

export function listUsableTools(grant: Grant): readonly Tool[] {
  return TOOLS.filter(tool => tool.isUsableBy(grant))
}
