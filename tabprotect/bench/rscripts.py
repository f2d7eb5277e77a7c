"""What Rscript is asked to run: each script reads ``cells.csv`` (one row per cell, in cell order) and writes ``out.txt`` with 1 for every hidden cell.

Written from the manuals of the packages (GaussSuppression 1.2, SSBtools 1.7, sdcTable 0.32); nothing of them is part of this project.
"""

from __future__ import annotations

GAUSS = """
args <- commandArgs(trailingOnly = TRUE); suppressMessages(library(GaussSuppression))
folder <- args[1]
d <- read.csv(file.path(folder, "cells.csv"), colClasses = "character")
x <- Matrix::Matrix(as.matrix(read.csv(file.path(folder, "x.csv"), header = FALSE)), sparse = TRUE)
primary <- which(d$status == "u")
s <- SSBtools::GaussSuppression(x, candidates = order(-as.numeric(d$value)), primary = primary)
out <- rep(0, ncol(x)); out[primary] <- 1; out[s] <- 1
write.table(out, file.path(folder, "out.txt"), row.names = FALSE, col.names = FALSE)
"""

# the cell values are passed as frequencies: that is what sdcTable's attacker and its protection levels refer to
SDCTABLE = """
args <- commandArgs(trailingOnly = TRUE); suppressMessages(library(sdcTable))
folder <- args[1]; method <- args[2]; minutes <- as.numeric(args[3])
d <- read.csv(file.path(folder, "cells.csv"), colClasses = "character")
dims <- grep("^d[0-9]+$", names(d), value = TRUE)
trees <- lapply(dims, function(k) read.csv(file.path(folder, paste0(k, ".csv")), colClasses = "character"))
names(trees) <- dims
for (k in c("value", "lpl", "upl", "ub")) d[[k]] <- as.numeric(d[[k]])
inner <- d[d$inner == "1", c(dims, "value")]
p <- makeProblem(data = inner, dimList = trees, freqVarInd = match("value", names(inner)))
key <- function(f) do.call(paste, c(as.data.frame(f)[dims], sep = "/"))
at <- match(key(d), key(sdcProb2df(p, addDups = FALSE, dimCodes = "original")))
stopifnot(!anyNA(at))
p <- setInfo(p, type = "sdcStatus", index = at, input = d$status)
p <- setInfo(p, type = "ub", index = at, input = d$ub)
u <- d$status == "u"
for (k in c("LPL", "UPL")) p <- setInfo(p, type = k, index = at[u], input = d[[tolower(k)]][u])
done <- if (method %in% c("OPT", "HITAS")) protectTable(p, method = method, timeLimit = minutes) else protectTable(p, method = method)
end <- as.data.frame(getInfo(done, type = "finalData"))
hidden <- end$sdcStatus[match(key(d), key(end))] %in% c("u", "x")
write.table(as.integer(hidden), file.path(folder, "out.txt"), row.names = FALSE, col.names = FALSE)
"""
