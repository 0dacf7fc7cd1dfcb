setlocal commentstring=#\ %s comments=:# expandtab shiftwidth=2 softtabstop=2
