# Leaves out sources of oneDNN that only other operations than matrix products and reorders use: a third of them, and more of the
# time that they take. Their objects would never be linked.
function(leave_out)
	foreach(part dnnl_cpu dnnl_cpu_x64)
		get_target_property(sources ${part} SOURCES)
		list(FILTER sources EXCLUDE REGEX "/src/cpu/(x64/)?(lrn|prelu|rnn|shuffle)/[^/]*pp$")
		list(FILTER sources EXCLUDE REGEX "/x64/jit_[^/]*(binary|brgemm|eltwise|transpose)[^/]*cpp$")
		list(FILTER sources EXCLUDE REGEX "/[^c/][^/]*(conv|normalization|pool|reduction|resampling|softmax)[^/]*cpp$")
		set_target_properties(${part} PROPERTIES SOURCES "${sources}")
	endforeach()
endfunction()
cmake_language(DEFER CALL leave_out)
